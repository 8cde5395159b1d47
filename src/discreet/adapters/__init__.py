"""Adapters: a private plan in coba, Open Bandit Pipeline, scikit-learn, Vowpal Wabbit and ONNX.

Each file needs the package that it is for, and none has mathematics.
"""
