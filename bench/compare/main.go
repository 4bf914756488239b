//go:build unix

// Command compare does the same work with anykind and with client-go against one real API server and prints, line by
// line, what part of client-go's cost anykind's is: "bench NAME ratio=R ours=… theirs=…". With -docs it writes the page
// docs/BENCHMARKS.md and its plot, which say how it is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

// options say what is compared.
type options struct {
	kubeconfig string
	match      []string // names that a comparison's must begin with, one of them; none means all
	pods       []int    // lengths of lists
	events     int      // of a watch
	changes    int      // in caches of the longest list, a thousand a second
	calls      int      // of each verb
	rounds     int      // 0 means as many as the length of a run lets us have
	docs       string   // where the page goes; "" means nowhere
	profileFor time.Duration
	lines      io.Writer
	progress   io.Writer
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
	var match, pods string
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.StringVar(&opts.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "the server, with its API server and etcd on this machine and nothing in them that is needed")
	flags.StringVar(&match, "bench", "", "beginnings of the names to compare, with commas between them; all without it")
	flags.StringVar(&pods, "pods", "5000,50000", "lengths of lists, with commas between them")
	flags.IntVar(&opts.events, "events", 5000, "length of the watch")
	flags.IntVar(&opts.changes, "changes", 60_000, "changes in caches of the longest list, written at a thousand a second; so few that no object is changed again within a second, or a cache tells two changes as one")
	flags.IntVar(&opts.calls, "calls", 300, "calls of each verb")
	flags.IntVar(&opts.rounds, "rounds", 0, "how often each side does each task; 0 means 3 to 11 times, shorter ones more often")
	flags.StringVar(&opts.docs, "docs", "", "the folder to write BENCHMARKS.md and its plot to")
	flags.DurationVar(&opts.profileFor, "profileFor", 3*time.Second, "how long to profile each task whose aim is missed, for the page")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if opts.kubeconfig == "" {
		return nil, errors.New("no server is given: set KUBECONFIG, or run `make bench`")
	}
	if match != "" {
		opts.match = strings.Split(match, ",")
	}
	if pods == "" {
		pods = flags.Lookup("pods").DefValue
	}
	for _, text := range strings.Split(pods, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			return nil, fmt.Errorf("-pods %q: %q is no length of a list", pods, text)
		}
		opts.pods = append(opts.pods, count)
	}
	return opts, nil
}

// compare prints a line for each comparison.
func compare(ctx context.Context, opts *options) error {
	chosen := opts.chosen()
	if len(chosen) == 0 {
		return fmt.Errorf("no comparison's name begins with %s", strings.Join(opts.match, " or "))
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
	server, err := connect(ctx, opts)
	if err != nil {
		return err
	}
	defer server.client.Close()
	measured, err := measureAll(ctx, opts, server, sides, runsOf(chosen))
	if err != nil {
		return err
	}
	var results []result
	for _, c := range chosen {
		r := result{comparison: c, oursCost: measured.of(c.ours), theirsCost: measured.of(c.theirs)}
		fmt.Fprintln(opts.lines, r)
		results = append(results, r)
	}
	if opts.docs == "" {
		return nil
	}
	return writePage(ctx, opts, server, sides, results)
}
