package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// checkOptions are the options of check.
type checkOptions struct {
	version   string // the next minor version by default
	artifacts string // the folder for the programs of all platforms, unless it is ""
	trial     bool   // the steps of a new user with an empty build cache, in place of the checks
}

// check releases a copy of the checkout, with uncommitted changes. It then uses the modules like their users: in modules outside
// of the repository, without go.work, from a file proxy.
func check(ctx context.Context, root string, opts checkOptions) error {
	temp, err := os.MkdirTemp("", "release-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	clone := filepath.Join(temp, "clone")
	if err := copyCheckout(ctx, root, clone); err != nil {
		return err
	}
	last, err := lastVersion(ctx, clone)
	if err != nil {
		return err
	}
	version := opts.version
	if version == "" {
		if version, err = nextMinor(last); err != nil {
			return err
		}
	}
	modules, err := readModules(clone)
	if err != nil {
		return err
	}
	proxy, err := newFileProxy(ctx, temp)
	if err != nil {
		return err
	}
	u := &user{dir: filepath.Join(temp, "user"), clone: clone, version: version, proxy: proxy, modules: published(modules)}
	type step struct {
		name string
		run  func(context.Context) error
	}
	release := step{"release " + version + " of a copy", func(ctx context.Context) error { return prepareWith(ctx, clone, modules, version, proxy) }}
	steps := []step{
		{"API as in docs/api", func(ctx context.Context) error { return dumpAPI(ctx, root, modules, true) }},
		{"licences as in docs/LICENCES.md", func(ctx context.Context) error { return writeLicences(ctx, root, modules, true, "") }},
		release,
		{"go get of each package", u.getPackages},
		{"go install and go run of each program", u.installPrograms},
		{"go vet of the snippets of README and docs", u.vetDocuments},
	}
	if opts.artifacts != "" {
		steps = append(steps, step{"programs of all platforms", func(ctx context.Context) error { return u.buildArtifacts(ctx, opts.artifacts) }})
	}
	if opts.trial {
		steps = []step{release, {"steps of a new user", func(ctx context.Context) error { return u.try(ctx, root) }}}
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("release: ok %s (%s)\n", step.name, time.Since(began).Round(time.Second))
	}
	return nil
}

// copyCheckout clones a repository with its tags and commits its uncommitted changes to the clone.
func copyCheckout(ctx context.Context, root, clone string) error {
	if _, err := git(ctx, root, "clone", "-q", "--no-hardlinks", root, clone); err != nil {
		return err
	}
	files, err := git(ctx, root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	if _, err := git(ctx, clone, "rm", "-rqf", "."); err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(clone, name)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"config", "user.name", "release check"}, {"config", "user.email", "release@example.com"}, {"config", "commit.gpgsign", "false"},
		{"config", "tag.gpgsign", "false"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", "Changes that are not committed"},
	} {
		if _, err := git(ctx, clone, args...); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted and not committed
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode())
}

// nextMinor returns the next minor version after last. It returns v0.1.0 if last is "".
func nextMinor(last string) (string, error) {
	if last == "" {
		return "v0.1.0", nil
	}
	major, minor, _ := strings.Cut(semver.MajorMinor(last), ".")
	number, err := strconv.Atoi(minor)
	if err != nil {
		return "", fmt.Errorf("version %s: %w", last, err)
	}
	return fmt.Sprintf("%s.%d.0", major, number+1), nil
}
