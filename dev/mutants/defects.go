package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // defects.txt
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed defects.txt
var defectList string

// examples are left out: they wait for what they show without a bound, so that a defect makes them hang.
const examples = "^Example"

// defectTimeout bounds the tests of a defect.
const defectTimeout = 5 * time.Minute

// defect is a chosen mutant: a block of defects.txt.
type defect struct {
	name, breaks string
	file         string // relative to the root
	packages     []string
	old, changed string
}

// parseDefects reads the blocks of defects.txt.
func parseDefects(list string) (all []defect, err error) {
	for block := range strings.SplitSeq(list, "\n\n") {
		lines := slices.DeleteFunc(strings.Split(block, "\n"), func(line string) bool { return line == "" || line[0] == '#' })
		if len(lines) == 0 {
			continue
		}
		if len(lines) < 3 {
			return nil, fmt.Errorf("defects.txt: %q is no defect", lines[0])
		}
		var d defect
		d.name, d.breaks, _ = strings.Cut(lines[0], ": ")
		words := strings.Fields(lines[1])
		d.file = words[0]
		d.packages = words[1:]
		for _, line := range lines[2:] {
			if line[0] != '+' {
				d.old += line[1:] + "\n"
			}
			if line[0] != '-' {
				d.changed += line[1:] + "\n"
			}
		}
		all = append(all, d)
	}
	return all, nil
}

// mutant returns the change of the file, which must have the old lines once.
func (d *defect) mutant(root string) (mutant, error) {
	m := mutant{file: filepath.Join(root, d.file), kind: d.breaks, text: d.changed}
	var err error
	if m.source, err = os.ReadFile(m.file); err != nil {
		return mutant{}, err
	}
	if n := bytes.Count(m.source, []byte(d.old)); n != 1 {
		return mutant{}, fmt.Errorf("defect %s: its lines occur %d times in %s, want 1", d.name, n, d.file)
	}
	m.start = bytes.Index(m.source, []byte(d.old))
	m.end = m.start + len(d.old)
	return m, nil
}

// runDefects runs the tests of the named defects, or of all without names, and prints a table.
func runDefects(ctx context.Context, out io.Writer, root, skip string, names []string) error {
	all, err := parseDefects(defectList)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "defects")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	fmt.Fprintln(out, "| defect | what it breaks | tests |\n|---|---|---|")
	var survivors []string
	for _, d := range all {
		if len(names) > 0 && !slices.Contains(names, d.name) {
			continue
		}
		m, err := d.mutant(root)
		if err != nil {
			return err
		}
		tests := &runner{packages: d.packages, skip: cmp.Or(skip, examples), folder: folder, timeout: defectTimeout}
		result, err := tests.test(ctx, m)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", d.name, d.breaks, result)
		if result == survived || result == invalid {
			survivors = append(survivors, d.name)
		}
	}
	if len(survivors) > 0 {
		return fmt.Errorf("no test fails with %s", strings.Join(survivors, ", "))
	}
	return nil
}
