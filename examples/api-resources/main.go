// Command api-resources prints the same table as `kubectl api-resources`: every served resource, in its preferred version. With
// -wide it adds verbs and categories. With -watch it then prints changes, such as new and deleted CustomResourceDefinitions,
// until it is interrupted.
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
	watch := flag.Bool("watch", false, "print changes, too")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *wide, *watch)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
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
	snapshot, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	if err := list(snapshot, os.Stdout, wide); err != nil || !watch {
		return err
	}
	return watchChanges(ctx, client, snapshot, os.Stdout)
}

// list prints the resources, sorted by group and name as in kubectl.
func list(snapshot *discovery.Snapshot, out io.Writer, wide bool) error {
	resources := slices.Collect(snapshot.PreferredResources(nil))
	slices.SortStableFunc(resources, func(a, b *discovery.Resource) int {
		return cmp.Or(cmp.Compare(a.GVR.Group, b.GVR.Group), cmp.Compare(a.GVR.Resource, b.GVR.Resource))
	})
	table := tabwriter.NewWriter(out, 6, 4, 3, ' ', 0)
	heading := "NAME\tSHORTNAMES\tAPIVERSION\tNAMESPACED\tKIND"
	if wide {
		heading += "\tVERBS\tCATEGORIES"
	}
	fmt.Fprintln(table, heading)
	for _, r := range resources {
		fmt.Fprintf(table, "%s\t%s\t%s\t%t\t%s", r.GVR.Resource, strings.Join(r.ShortNames, ","), r.GVR.GroupVersion(), r.Namespaced, r.GVK.Kind)
		if wide {
			fmt.Fprintf(table, "\t%s\t%s", strings.Join(r.Verbs, ","), strings.Join(r.Categories, ","))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// watchChanges prints the changes since a snapshot until ctx ends.
func watchChanges(ctx context.Context, client *discovery.Client, since *discovery.Snapshot, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- client.Run(ctx)
	}()
	for change := range client.Changes(ctx, since) {
		verb := "changed"
		resource := change.New
		switch {
		case change.Old == nil:
			verb = "added"
		case change.New == nil:
			verb = "removed"
			resource = change.Old
		}
		if _, err := fmt.Fprintf(out, "%-7s  %s  %s\n", verb, resource.GVR.GroupResource(), resource.GVK); err != nil {
			cancel()
			return errors.Join(err, <-ended)
		}
	}
	return <-ended
}
