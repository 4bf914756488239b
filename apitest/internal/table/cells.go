package table

// builtinCells returns the function that computes the cells of a built-in kind. resource is plural.group, as in
// "deployments.apps".
func builtinCells(resource string) (func(object) []any, bool) {
	for _, all := range []func(string) func(object) []any{podCells, workloadCells, networkCells, storageCells, policyCells, coreCells} {
		if cells := all(resource); cells != nil {
			return cells, true
		}
	}
	return nil, false
}
