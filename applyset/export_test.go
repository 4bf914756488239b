package applyset

// Compare is compare for tests.
var Compare = compare
