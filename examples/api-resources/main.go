// Command api-resources prints what `kubectl api-resources` prints: every resource that the server serves, in its
// preferred version. With -wide it adds verbs and categories. With -watch it goes on to show what changes, such as
// CustomResourceDefinitions that come and go, until it is interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/transport"
)

func main() {
	wide := flag.Bool("wide", false, "show verbs and categories")
	watch := flag.Bool("watch", false, "go on to show what changes")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *wide, *watch); err != nil && !errors.Is(err, context.Canceled) {
		log.Print(err)
	}
}

func run(ctx context.Context, wide, watch bool) error {
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	conn, err := transport.Open(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := discovery.New(conn, nil)
	if err := list(ctx, client, os.Stdout, wide); err != nil || !watch {
		return err
	}
	return follow(ctx, client, os.Stdout)
}

// list prints the resources as kubectl does, by group and name.
func list(ctx context.Context, client *discovery.Client, out io.Writer, wide bool) error {
	served, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	rows := preferred(served)
	slices.SortStableFunc(rows, func(a, b *discovery.Resource) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.GVR.Resource, b.GVR.Resource))
	})
	table := tabwriter.NewWriter(out, 6, 4, 3, ' ', 0)
	heading := "NAME\tSHORTNAMES\tAPIVERSION\tNAMESPACED\tKIND"
	if wide {
		heading += "\tVERBS\tCATEGORIES"
	}
	fmt.Fprintln(table, heading)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%t\t%s", r.GVR.Resource, strings.Join(r.ShortNames, ","), r.GVR.GroupVersion(), r.Namespaced, r.GVK.Kind)
		if wide {
			fmt.Fprintf(table, "\t%s\t%s", strings.Join(r.Verbs, ","), strings.Join(r.Categories, ","))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// preferred takes of each resource the version that the server prefers.
func preferred(served *discovery.Snapshot) []*discovery.Resource {
	var rows []*discovery.Resource
	for _, group := range served.Groups {
		seen := map[string]bool{}
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				if len(resource.Verbs) > 0 && !seen[resource.GVR.Resource] {
					seen[resource.GVR.Resource] = true
					rows = append(rows, resource)
				}
			}
		}
	}
	return rows
}

// follow shows changes as they happen. Live mode runs as long as somebody reads.
func follow(ctx context.Context, client *discovery.Client, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	changes := client.Changes(ctx)
	go func() {
		defer cancel()
		ended <- client.Live(ctx)
	}()
	for change := range changes {
		sign, resource := "changed", change.After
		switch {
		case change.Before == nil:
			sign = "added"
		case change.After == nil:
			sign, resource = "removed", change.Before
		}
		if _, err := fmt.Fprintf(out, "%-7s  %s  %s\n", sign, resource.GVR.GroupResource(), resource.GVK); err != nil {
			cancel()
			return errors.Join(err, <-ended)
		}
	}
	return <-ended
}
