//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/anykind/anykind/sandbox/sandbox"
)

func restart(ctx context.Context, args []string) error {
	flags := newFlags("restart", "[flags] COMPONENT", "Restarts a component on the same port, with its data, and waits until it is ready.")
	name := flags.String("name", defaultName, "`name` of the cluster")
	kill := flags.Bool("kill", false, "with SIGKILL, as in a crash")
	component, err := parseComponent(flags, args)
	if err != nil {
		return err
	}
	dir, err := findCluster(*name)
	if err != nil {
		return err
	}
	query := url.Values{"component": {component}, "kill": {strconv.FormatBool(*kill)}}
	return call(ctx, dir, http.MethodPost, "/restart", query, &sandbox.Status{})
}

func compact(ctx context.Context, args []string) error {
	flags := newFlags("compact", "[--name NAME]", "Makes etcd forget every revision but the newest, and prints that.")
	name := flags.String("name", defaultName, "`name` of the cluster")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	dir, err := findCluster(*name)
	if err != nil {
		return err
	}
	var answer struct{ Revision string }
	if err := call(ctx, dir, http.MethodPost, "/compact", nil, &answer); err != nil {
		return err
	}
	fmt.Println(answer.Revision)
	return nil
}

func logs(ctx context.Context, args []string) error {
	flags := newFlags("logs", "[--name NAME] COMPONENT", "Prints what a component wrote so far.")
	name := flags.String("name", defaultName, "`name` of the cluster")
	component, err := parseComponent(flags, args)
	if err != nil {
		return err
	}
	dir, err := findCluster(*name)
	if err != nil {
		return err
	}
	var s sandbox.Status
	if err := call(ctx, dir, http.MethodGet, "/status", nil, &s); err != nil {
		return err
	}
	for _, c := range s.Components {
		if c.Name == component {
			return printFile(c.Log)
		}
	}
	return fmt.Errorf("this sandbox has no component %q; `sandbox status` lists them", component)
}

// parseComponent parses the flags and the one argument, a component's name; flags
// may follow it.
func parseComponent(flags *flag.FlagSet, args []string) (string, error) {
	if err := parse(flags, args); err != nil {
		return "", err
	}
	component := flags.Arg(0)
	if component == "" {
		return "", fmt.Errorf("%s: which component? `sandbox status` lists them", flags.Name())
	}
	if err := errors.Join(parse(flags, flags.Args()[1:]), noArguments(flags)); err != nil {
		return "", err
	}
	return component, nil
}

func printFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	defer file.Close()
	_, err = io.Copy(os.Stdout, file)
	return err
}
