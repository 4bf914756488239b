// Command release prepares and checks releases of the modules of this repository.
//
//	release tidy [-diff]      go mod tidy for every module, with its siblings in the checkout
//	release api [-diff]       write the public API of every published module to docs/api
//	release licences [-diff] [-texts FILE]   write the licences of all dependencies to docs/LICENCES.md
//	release prepare VERSION   commit and tag a release; pushes nothing
//	release notes VERSION     print CHANGELOG's section of a version
//	release check [-version VERSION] [-artifacts FOLDER] [-trial]   release a copy of the checkout, and install it from a file proxy as a user does
//
// All modules of a release have the same version. A published module requires its siblings at this version and has no replace
// directives; go.work combines the modules for development.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command; want tidy, api, licences, prepare, notes or check")
	}
	root, err := output(ctx, command{name: "git", args: []string{"rev-parse", "--show-toplevel"}})
	if err != nil {
		return err
	}
	modules, err := readModules(root)
	if err != nil {
		return err
	}
	switch args[0] {
	case "tidy":
		flags := flag.NewFlagSet("tidy", flag.ExitOnError)
		diff := flags.Bool("diff", false, "change nothing; print the differences and fail if there are any")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return tidyAll(ctx, root, modules, *diff)
	case "api":
		flags := flag.NewFlagSet("api", flag.ExitOnError)
		diff := flags.Bool("diff", false, "write nothing; fail if a file differs")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return dumpAPI(ctx, root, modules, *diff)
	case "licences":
		flags := flag.NewFlagSet("licences", flag.ExitOnError)
		diff := flags.Bool("diff", false, "write no document; fail if it differs")
		texts := flags.String("texts", "", "write the texts of all licences to this `file`, too")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return writeLicences(ctx, root, modules, *diff, *texts)
	case "prepare":
		if len(args) != 2 {
			return fmt.Errorf("prepare: want one version, such as v0.1.0")
		}
		return prepare(ctx, root, modules, args[1])
	case "notes":
		if len(args) != 2 {
			return fmt.Errorf("notes: want one version, such as v0.1.0")
		}
		return printNotes(root, args[1])
	case "check":
		return runCheck(ctx, root, args[1:])
	}
	return fmt.Errorf("unknown command %q; want tidy, api, licences, prepare, notes or check", args[0])
}

// runCheck runs check with the flags in args.
func runCheck(ctx context.Context, root string, args []string) error {
	flags := flag.NewFlagSet("check", flag.ExitOnError)
	var opts checkOptions
	flags.StringVar(&opts.version, "version", "", "release a copy as this `version`; the next minor version by default")
	flags.StringVar(&opts.artifacts, "artifacts", "", "write the programs of all platforms to this `folder`")
	flags.BoolVar(&opts.trial, "trial", false, "take the steps of a new user with empty caches, and write their times to docs/START.md")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return check(ctx, root, opts)
}

// printNotes prints CHANGELOG's section of a version. The section of a pre-release is "Unreleased".
func printNotes(root, version string) error {
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section := version
	if semver.Prerelease(version) != "" {
		section = "Unreleased"
	}
	notes := changelogSection(string(changelog), section)
	if notes == "" {
		return fmt.Errorf("CHANGELOG.md has nothing about %s", version)
	}
	fmt.Println(notes)
	return nil
}
