"""Arrays of any library of the Array API: missing functions, small linear algebra, stacking."""
