//go:build unix

// Command compare does the same work with anykind and with client-go against a real API server and prints the ratio of their
// costs, a line for each comparison: "bench NAME ratio=R ours=… theirs=…". With -docs it writes docs/BENCHMARKS.md, with the
// method of measurement, and its plot.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the command line.
type options struct {
	kubeconfig string
	match      []string // prefixes of the names of comparisons; none means all
	pods       []int    // lengths of lists
	growth     []int    // numbers of objects in caches, for the plots of the page
	events     int      // of a watch
	changes    int      // in caches of the longest list, a thousand a second
	calls      int      // of each verb
	// definitions is the number of CustomResourceDefinitions for listing resources.
	definitions int
	kinds       int    // CustomResourceDefinitions of the corpus, for cli-explain
	rounds      int    // 0 means a number derived from the length of a run
	docs        string // folder of the page and of the results; "" means none
	resume      bool   // measures only groups missing in the results
	profileFor  time.Duration
	lines       io.Writer
	progress    io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	opts, err := parse(os.Args[1:])
	if err == nil {
		err = compare(ctx, opts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	opts := &options{lines: os.Stdout, progress: os.Stderr}
	var match, pods, growth string
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "`file` of a server that runs on this machine and has no data that is needed")
	flags.StringVar(&match, "bench", "", "comma-separated prefixes of the names to compare; default all")
	flags.StringVar(&pods, "pods", "5000,50000", "comma-separated lengths of lists")
	flags.StringVar(&growth, "growth", "1000,10000,100000", "comma-separated numbers of objects in caches, for the plots of -docs")
	flags.IntVar(&opts.events, "events", 5000, "length of the watch")
	flags.IntVar(&opts.changes, "changes", 60_000, "changes in caches of the longest list, written at a thousand a second; few enough that no object changes twice within a second, which a cache may merge")
	flags.IntVar(&opts.calls, "calls", 300, "calls of each verb")
	flags.IntVar(&opts.definitions, "definitions", 300, "CustomResourceDefinitions whose resources are listed")
	flags.IntVar(&opts.kinds, "kinds", 422, "CustomResourceDefinitions of public projects that are served while a kind is explained")
	flags.IntVar(&opts.rounds, "rounds", 0, "how often each side runs each task; 0 means 3 to 11 times, short tasks more often")
	flags.StringVar(&opts.docs, "docs", "", "the `folder` of BENCHMARKS.md, its plots and the figures that it is written from; figures of its other pages and of ../README.md are replaced; with -bench, only those are measured again")
	flags.BoolVar(&opts.resume, "resume", false, "measure only what the figures in the folder of -docs lack of this state of the library, after an interrupted run")
	flags.DurationVar(&opts.profileFor, "profileFor", 3*time.Second, "how long to profile each task whose aim is missed, for the page")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if opts.kubeconfig == "" {
		return nil, errors.New("missing kubeconfig (set KUBECONFIG, or run `make bench`)")
	}
	if match != "" {
		opts.match = strings.Split(match, ",")
	}
	if pods == "" {
		pods = flags.Lookup("pods").DefValue
	}
	var err error
	if opts.pods, err = parseCounts("pods", pods); err != nil {
		return nil, err
	}
	opts.growth, err = parseCounts("growth", growth)
	return opts, err
}

// parseCounts returns the numbers of a flag, in ascending order.
func parseCounts(name, list string) ([]int, error) {
	var counts []int
	for _, text := range strings.Split(list, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return nil, fmt.Errorf("-%s %q: %q is not a length", name, list, text)
		}
		counts = append(counts, count)
	}
	slices.Sort(counts)
	return counts, nil
}

// compare runs the chosen comparisons and prints a line for each.
func compare(ctx context.Context, opts *options) error {
	chosen := opts.chosen()
	groups := opts.chosenGroups()
	if len(groups) == 0 {
		return fmt.Errorf("no comparison has the prefix %s", strings.Join(opts.match, " or "))
	}
	if opts.docs != "" {
		if err := os.MkdirAll(opts.docs, 0o755); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "anykind-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sides, err := build(ctx, opts, dir)
	if err != nil {
		return err
	}
	server, err := connect(ctx, opts, dir)
	if err != nil {
		return err
	}
	defer server.client.Close()
	kept, err := openResults(opts.docs)
	if err != nil {
		return err
	}
	if kept.library, err = sides.library(); err != nil {
		return err
	}
	v, err := findVersions(ctx, server)
	if err != nil {
		return err
	}
	if opts.resume {
		older := kept.older()
		groups = slices.DeleteFunc(groups, func(g group) bool { return kept.has(g, v) && !slices.Contains(older, g.name) })
	}
	if err := measureAll(ctx, opts, server, sides, groups, v, kept); err != nil {
		return err
	}
	for _, r := range opts.resultsOf(chosen, kept) {
		fmt.Fprintln(opts.lines, r)
	}
	if opts.docs == "" {
		return nil
	}
	return writePage(ctx, opts, server, sides, v, kept)
}
