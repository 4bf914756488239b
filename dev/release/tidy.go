package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

var errNotTidy = errors.New("go.mod files are not tidy; run make tidy")

// tidyAll tidies every module. Requirements on modules of the repository mean the checkout, at any version.
func tidyAll(ctx context.Context, root string, modules []*goModule, diff bool) error {
	var failed error
	for _, m := range modules {
		changes, err := m.tidy(ctx, root, modules, diff)
		if err != nil {
			return err
		}
		if diff && changes != "" {
			fmt.Printf("%s:\n%s", m.folder, changes)
			failed = errNotTidy
		}
	}
	return failed
}

// tidy runs go mod tidy on a copy of go.mod with replace directives for the folders of the repository's modules. It returns the
// changed lines and, unless diff is set, writes go.mod and go.sum.
func (m *goModule) tidy(ctx context.Context, root string, modules []*goModule, diff bool) (string, error) {
	folder := filepath.Join(root, m.folder)
	temp, err := os.MkdirTemp("", "tidy")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	file, err := parseGoMod(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	for _, local := range modules {
		if local != m && !m.replaces {
			if err := file.AddReplace(local.path, "", filepath.Join(root, local.folder), ""); err != nil {
				return "", err
			}
		}
	}
	for _, replace := range file.Replace { // relative paths mean the folder of the copy
		if strings.HasPrefix(replace.New.Path, ".") {
			if err := file.AddReplace(replace.Old.Path, "", filepath.Join(folder, replace.New.Path), ""); err != nil {
				return "", err
			}
		}
	}
	sum, err := readSum(filepath.Join(folder, "go.sum"))
	if err != nil {
		return "", err
	}
	copied := filepath.Join(temp, "go.mod")
	if err := os.WriteFile(copied, modfile.Format(file.Syntax), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(temp, "go.sum"), []byte(sum.text(isForeign)), 0o600); err != nil {
		return "", err
	}
	tidy := command{dir: folder, env: []string{"GOWORK=off", "GOFLAGS="}, name: "go", args: []string{"mod", "tidy", "-modfile=" + copied}}
	if _, err := output(ctx, tidy); err != nil {
		return "", err
	}
	return m.takeTidied(folder, temp, sum, diff)
}

// takeTidied compares and, unless diff is set, writes the tidied files of a temporary folder.
func (m *goModule) takeTidied(folder, temp string, before sumFile, diff bool) (string, error) {
	original, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	tidied, err := parseGoMod(filepath.Join(temp, "go.mod"))
	if err != nil {
		return "", err
	}
	kept, err := modfile.Parse("go.mod", original, nil)
	if err != nil {
		return "", err
	}
	var required []*modfile.Require
	for _, r := range tidied.Require {
		required = append(required, &modfile.Require{Mod: r.Mod, Indirect: r.Indirect})
	}
	kept.SetRequireSeparateIndirect(required)
	kept.Cleanup()
	goMod, err := kept.Format()
	if err != nil {
		return "", err
	}
	after, err := readSum(filepath.Join(temp, "go.sum"))
	if err != nil {
		return "", err
	}
	goSum := before.text(isOwnSum) + after.text(isForeign)
	changes := lineChanges(string(original), string(goMod)) + lineChanges(before.text(nil), goSum)
	if diff || changes == "" {
		return changes, nil
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), goMod, 0o644); err != nil { //nolint:gosec // as other sources
		return "", err
	}
	return changes, os.WriteFile(filepath.Join(folder, "go.sum"), []byte(goSum), 0o644) //nolint:gosec // as other sources
}

// sumFile has the lines of a go.sum.
type sumFile []string

func readSum(path string) (sumFile, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return strings.SplitAfter(strings.TrimSuffix(string(content), "\n")+"\n", "\n"), nil
}

func (s sumFile) text(keep func(line string) bool) string {
	var b strings.Builder
	for _, line := range s {
		if strings.TrimSpace(line) != "" && (keep == nil || keep(line)) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// isOwnSum reports whether a line of go.sum belongs to a module of this repository. Releases write these lines.
func isOwnSum(line string) bool {
	path, _, _ := strings.Cut(line, " ")
	return isOwn(path)
}

func isForeign(line string) bool { return !isOwnSum(line) }

// lineChanges returns the removed lines with a prefix "-" and the added lines with a prefix "+".
func lineChanges(before, after string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, text, reference string }{{"-", before, after}, {"+", after, before}} {
		has := map[string]bool{}
		for line := range strings.Lines(side.reference) {
			has[strings.TrimSpace(line)] = true
		}
		for line := range strings.Lines(side.text) {
			if !has[strings.TrimSpace(line)] {
				fmt.Fprintf(&b, "%s%s\n", side.sign, strings.TrimSpace(line))
			}
		}
	}
	return b.String()
}
