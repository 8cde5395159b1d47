"""Public results: releases, their statistics, policy views, lift, and canonical documents."""
