package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/apitest/definitioncheck"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured/manifest"
)

// crdCheck compares the definitions in files with the live objects of their kinds.
func (p *program) crdCheck(ctx context.Context, args []string) error {
	reader := &manifest.Reader{In: p.stdin}
	var output string
	p.flags.Func("f", "`file`, folder or URL with CustomResourceDefinitions, or -; may be repeated", func(path string) error {
		reader.Paths = append(reader.Paths, path)
		return nil
	})
	p.flags.BoolVar(&reader.Recursive, "R", false, "read folders recursively")
	p.flags.StringVar(&output, "o", "text", "output `format`: text or json")
	if _, err := p.parse(args, 0, 0); err != nil {
		return err
	}
	if len(reader.Paths) == 0 || output != "text" && output != "json" {
		fmt.Fprintf(p.stderr, "%s: -f is required, and -o is text or json\n", p.flags.Name())
		return errUsage
	}
	objects, err := reader.Read(ctx)
	if err != nil {
		return err
	}
	var reports []*definitioncheck.Report
	err = p.connect(ctx, func(client *dynamic.Client) error {
		for _, obj := range objects {
			if obj.GetKind() != "CustomResourceDefinition" {
				continue
			}
			report, err := definitioncheck.Check(ctx, client, obj.Object, &definitioncheck.Options{Rules: cel.Rules{}})
			if err != nil {
				return fmt.Errorf("%s: %w", obj.Position(), err)
			}
			reports = append(reports, report)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if output == "json" {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(reports)
	} else {
		p.writeReports(reports)
	}
	for _, report := range reports {
		if err == nil && len(report.Definition)+len(report.Findings) > 0 {
			err = errFindings
		}
	}
	return err
}

// writeReports prints a section for each definition.
func (p *program) writeReports(reports []*definitioncheck.Report) {
	for _, report := range reports {
		count := len(report.Definition) + len(report.Findings)
		state := fmt.Sprintf("%d findings in %d objects", count, report.Objects)
		if report.IsNew {
			state = "new, no objects"
		}
		fmt.Fprintf(p.stdout, "%s: %s\n", report.Name, state)
		for _, finding := range append(report.Definition, report.Findings...) {
			fmt.Fprintf(p.stdout, "  %s\n", finding)
		}
		if report.Omitted > 0 {
			fmt.Fprintf(p.stdout, "  and %d more\n", report.Omitted)
		}
		for _, text := range report.NotChecked {
			fmt.Fprintf(p.stdout, "  not checked: %s\n", text)
		}
	}
}
