// Command contexts compares clusters: for each context of the kubeconfig, or for the given contexts, it prints the server's
// version and counts namespaces and pods. It connects to a few clusters at a time and reads lists page by page: its memory does
// not grow with the number of clusters or objects.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/transport/kubeconfig"
)

func main() {
	parallel := flag.Int("parallel", 3, "`number` of clusters at a time")
	timeout := flag.Duration("timeout", 30*time.Second, "time for each cluster")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: contexts [-parallel number] [-timeout duration] [context...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *parallel < 1 || slices.Contains(flag.Args(), "") {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, flag.Args(), *parallel, *timeout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, names []string, parallel int, timeout time.Duration) error {
	file, err := transport.LoadKubeconfig("")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(file.Contexts))
	}
	return compare(ctx, out, file, names, parallel, timeout)
}

// compare prints a row for each context. The row of a failed cluster has the error.
func compare(ctx context.Context, out io.Writer, file *kubeconfig.File, names []string, parallel int, timeout time.Duration) error {
	queue := make(chan int, len(names))
	for i := range names {
		queue <- i
	}
	close(queue)
	rows := make([]string, len(names))
	var workers sync.WaitGroup
	for range min(parallel, len(names)) {
		workers.Go(func() {
			for i := range queue {
				rows[i] = row(ctx, file, names[i], timeout)
			}
		})
	}
	workers.Wait()
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "CONTEXT\tVERSION\tNAMESPACES\tPODS")
	for i, name := range names {
		fmt.Fprintf(table, "%s\t%s\n", name, rows[i])
	}
	return table.Flush()
}

// row describes the cluster of a context.
func row(ctx context.Context, file *kubeconfig.File, name string, timeout time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Kubeconfig: file, Context: name})
	if err != nil {
		return err.Error()
	}
	client, err := dynamic.Connect(ctx, cfg)
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	version, err := client.Discovery().ServerVersion(ctx)
	if err != nil {
		return err.Error()
	}
	var counts [2]int
	for i, resource := range []string{"namespaces", "pods"} {
		if counts[i], err = count(ctx, client, resource); err != nil {
			return fmt.Sprintf("%s\t%s", version.GitVersion, err)
		}
	}
	return fmt.Sprintf("%s\t%d\t%d", version.GitVersion, counts[0], counts[1])
}

// count counts all objects by their metadata, page by page.
func count(ctx context.Context, client *dynamic.Client, name string) (int, error) {
	resource, err := client.Resource(ctx, name)
	if err != nil {
		return 0, err
	}
	counted := 0
	for _, err := range resource.AllNamespaces().Metadata().List(ctx, nil) {
		if err != nil {
			return 0, err
		}
		counted++
	}
	return counted, nil
}
