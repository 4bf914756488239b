//go:build unix

// Command validators validates the same objects with anyctl, kubeconform and kubectl-validate, all without a server and by the
// same server's schemas, and compares their outcomes with the server's. It writes the table of docs/SCHEMA.md. `make validators`
// draws the objects, builds the programs and runs it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	cases := flag.String("cases", "", "folder that the test of package schema wrote (ANYKIND_SCHEMA_EXPORT)")
	bin := flag.String("bin", "", "folder of the programs")
	page := flag.String("page", "", "Markdown page with the table")
	flag.Parse()
	if err := run(*cases, *bin, *page); err != nil {
		fmt.Fprintln(os.Stderr, "validators:", err)
		os.Exit(1)
	}
}

// object is an object with the server's outcome.
type object struct {
	File     string `json:"file"`
	IsCustom bool   `json:"isCustom"`
	Rejected bool   `json:"rejected"`
}

func run(dir, bin, page string) error {
	data, err := os.ReadFile(filepath.Join(dir, "outcomes.json")) //nolint:gosec // the caller's folder
	if err != nil {
		return err
	}
	var objects []object
	if err := json.Unmarshal(data, &objects); err != nil {
		return err
	}
	if err := writeJSONSchemas(filepath.Join(dir, "openapi"), filepath.Join(dir, "jsonschema")); err != nil {
		return err
	}
	var columns []*column
	for _, one := range validators(dir, bin) {
		result, err := one.run()
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		columns = append(columns, newColumn(one, result, objects))
	}
	table := render(objects, columns)
	fmt.Print(table)
	if page == "" {
		return nil
	}
	return writeTable(page, table)
}
