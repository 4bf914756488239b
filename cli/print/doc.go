// Package print writes objects as kubectl get does, for programs built on cobra and pflag: server-side tables, yaml, json,
// kyaml, name, jsonpath, go-template and custom-columns, and jq besides.
//
//	output := print.NewFlags()
//	output.AddFlags(cmd.Flags())
//	…
//	printer, err := output.Printer(os.Stdout)
//	if err != nil {
//		return err
//	}
//	return printer.List(objects)
//
// Rows of tables, as dynamic.Tables reads them, are written by a Table. With any format, --where filters objects by a jq
// expression, and --neat leaves out what servers set.
//
// # Memory
//
// Lists are written while they are read: json, yaml, name and jq hold one object; tables and custom columns hold the
// first rows, up to one MiB of text, from which they take the widths of columns, and then one row. A wider cell after those
// widens its column from there on. Sorting, jsonpath, go-template and kyaml need the whole list.
package print
