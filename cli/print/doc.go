// Package print writes objects as kubectl get does, for programs built on cobra and pflag: server-side tables, yaml, json,
// kyaml, name, jsonpath, go-template and custom-columns. The format jq is added.
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
// Rows of tables, as dynamic.Handle.Tables reads them, are written by a Table. With any format, --where filters objects by a jq
// expression, and --neat leaves out server-set fields.
//
// # Terminals
//
// An object may contain escape sequences. On a terminal, control characters except tab and line break, direction overrides and invalid
// UTF-8 become U+FFFD in every format. Other writers get the same bytes as from kubectl. Terminal
// returns such a writer for errors and warnings of a server.
//
// # Memory
//
// Lists are written while they are read: json, yaml, name and jq hold a single object; tables and custom columns hold the
// first MiB of rows to compute column widths, and then a single row. A wider cell in a later row widens its column. Sorting, jsonpath,
// go-template and kyaml need the whole list.
package print
