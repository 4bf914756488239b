package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

//go:embed modules.txt
var moduleList string

// module is a Go module, a source of the corpus.
type module struct {
	Path, Version string
	Sum           string // as in go.sum
	Zip           string // file in the module cache, once downloaded
}

func (m *module) String() string { return m.Path + "@" + m.Version }

// parseModules reads lines of path, version and checksum. Empty lines and lines beginning with # are skipped.
func parseModules(list string) ([]module, error) {
	var modules []module
	for n, line := range strings.Split(list, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("modules.txt line %d: %q is not a module's path, version and checksum", n+1, line)
		}
		modules = append(modules, module{Path: fields[0], Version: fields[1], Sum: fields[2]})
	}
	return modules, nil
}

// download downloads the modules to Go's module cache and sets their Zip. A checksum other than the listed checksum is an error.
func download(ctx context.Context, modules []module) error {
	// Outside of any module, so that no go.mod affects versions.
	dir, err := os.MkdirTemp("", "anykind-corpus-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	errs := make([]error, len(modules))
	slots := make(chan struct{}, 4)
	var all sync.WaitGroup
	for i := range modules {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = modules[i].download(ctx, dir)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// download downloads a module.
func (m *module) download(ctx context.Context, dir string) error {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.String())
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, failed := command.Output() // the output has the error
	var result struct{ Sum, Zip, Error string }
	if err := json.Unmarshal(output, &result); err != nil {
		return fmt.Errorf("download %s: %w: %s", m, cmp.Or(failed, err), strings.TrimSpace(stderr.String()))
	}
	switch {
	case result.Zip == "": // with a Zip, the error only concerns programs that need a newer Go
		return fmt.Errorf("download %s: %s", m, result.Error)
	case result.Sum != m.Sum:
		return fmt.Errorf("download %s: checksum %s is not the one of modules.txt, %s", m, result.Sum, m.Sum)
	}
	m.Zip = result.Zip
	return nil
}
