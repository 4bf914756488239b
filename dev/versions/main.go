// Command versions builds and tests modules of this repository with several versions of Kubernetes' libraries.
//
//	versions [-versions v0.34.13,v0.37.2] [-modules .,compat,apitest/cel] [-docs docs/VERSIONS.md]
//
// Each pair of module and version has its own go.mod in a temporary folder. The go.mod and go.work of the checkout are not
// changed. Versions older than the module's own requirement are skipped. With -docs the results are written to the page.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// supportedVersions are the tested versions of k8s.io/apimachinery and k8s.io/client-go, oldest first: the latest patch of each
// minor version. go.work selects the newest version for the tests of the checkout. A test compares the list with Makefile and
// ci.yml.
const supportedVersions = "v0.34.13,v0.35.10,v0.36.6,v0.37.2"

func main() {
	versions := flag.String("versions", supportedVersions, "versions of k8s.io/apimachinery and k8s.io/client-go")
	modules := flag.String("modules", ".,compat,apitest/cel", "folders of modules")
	docs := flag.String("docs", "", "the page to write the table to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := &table{versions: strings.Split(*versions, ",")}
	err := run(ctx, t, strings.Split(*modules, ","))
	if err == nil && *docs != "" {
		err = t.write(*docs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		stop()
		os.Exit(1)
	}
}

// run fills the table. It returns the failures of all modules and versions.
func run(ctx context.Context, t *table, modules []string) error {
	scratch, err := os.MkdirTemp("", "versions")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	var failures []error
	for _, folder := range modules {
		row := row{}
		for _, version := range t.versions {
			began := time.Now()
			c := &check{root: root, folder: folder, version: version, scratch: scratch}
			result, err := c.run(ctx)
			row.module = c.module
			if err != nil {
				failures = append(failures, fmt.Errorf("module %s with %s: %w", folder, version, err))
				result = "fails"
			}
			row.results = append(row.results, result)
			fmt.Printf("%-8s %s: %s (%.0f s)\n", folder, version, result, time.Since(began).Seconds())
		}
		t.rows = append(t.rows, row)
	}
	return errors.Join(failures...)
}

// check is a module with a version of the libraries.
type check struct {
	root, folder, version, scratch string
	module                         string // its path
	modfile                        string
}

func (c *check) run(ctx context.Context) (result string, err error) {
	oldest, err := c.writeGoMod()
	if err != nil {
		return "", err
	}
	if oldest != "" {
		return "needs " + oldest, nil
	}
	if _, err := c.command(ctx, "mod", "tidy"); err != nil {
		return "", err
	}
	// This compiles all packages and tests. Lint runs vet, which would analyze all dependencies again for this version.
	if _, err := c.command(ctx, "list", "-test", "-export", "./..."); err != nil {
		return "", err
	}
	packages, err := c.command(ctx, "list", "./...")
	if err != nil {
		return "", err
	}
	test := []string{"test", "-vet=off"}
	for name := range strings.FieldsSeq(packages) {
		// internal/architecture reads the module's own go.mod.
		if !strings.HasSuffix(name, "/internal/architecture") {
			test = append(test, name)
		}
	}
	if _, err := c.command(ctx, test...); err != nil {
		return "", err
	}
	return "passes", nil
}

// command runs the go command in the module with c.modfile and without a cluster.
func (c *check) command(ctx context.Context, args ...string) (string, error) {
	verb := 1
	if args[0] == "mod" {
		verb = 2
	}
	flags := []string{"-modfile=" + c.modfile}
	cmd := exec.CommandContext(ctx, "go", append(append(args[:verb:verb], flags...), args[verb:]...)...)
	cmd.Dir = filepath.Join(c.root, c.folder)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ANYKIND_") && !strings.HasPrefix(variable, "KUBECONFIG=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "GOWORK=off")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, stdout, stderr.String())
	}
	return string(stdout), nil
}
