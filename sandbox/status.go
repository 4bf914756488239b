//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"text/tabwriter"

	"github.com/anykind/anykind/sandbox/sandbox"
)

const statusText = `Says what is running and where. Exits with 1 when the cluster is not running or one
of its components is not ready.`

func status(ctx context.Context, args []string) error {
	flags := newFlags("status", "[--name NAME] [--json]", statusText)
	name := flags.String("name", defaultName, "`name` of the cluster")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
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
	if *asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(&s)
	} else {
		err = printStatus(os.Stdout, &s)
	}
	if err == nil && !s.Ready {
		return exitCode(1)
	}
	return err
}

func printStatus(w io.Writer, s *sandbox.Status) error {
	fmt.Fprintf(w, "Kubernetes %s in %s\n", s.Kubernetes, s.Dir)
	for _, path := range s.Kubeconfigs {
		fmt.Fprintf(w, "KUBECONFIG=%s\n", path)
	}
	if s.Kubectl != "" {
		fmt.Fprintf(w, "ANYKIND_KUBECTL=%s\n", s.Kubectl)
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "\nCOMPONENT\tVERSION\tSTATE\tPID\tURL")
	for _, c := range s.Components {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", c.Name, c.Version, c.State, c.Pid, c.URL)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, c := range s.Components {
		if c.Error != "" {
			fmt.Fprintf(w, "\n%s\n", c.Error)
		}
	}
	return nil
}
