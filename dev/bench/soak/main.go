//go:build unix

// Command soak runs anykind's caches and client-go's dynamic informers side by side for a long time under churn and faults, and
// compares both with the server at the end.
//
// It needs a sandbox of its own (`make soak MINUTES=25`). Ten custom and five built-in resources with -objects objects are
// changed -rate times a second. On each side, a user with RBAC rights on these resources only keeps 35 caches of them. On a
// schedule determined by -seed the API server is restarted and killed, etcd is compacted, connections stall without being closed,
// the user's token is replaced, and a CustomResourceDefinition is deleted and created again.
//
// Every ten seconds both programs are sampled. At the end the churn stops and every cache must equal a list of the server within
// two minutes; then both programs stop their caches and report their remaining resources. A different cache, or a cache with an
// early end, is an error. With -docs the result is written to RELIABILITY.md of that folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/anykind/anykind/dev/bench/internal/soak"
)

type options struct {
	kubeconfig string
	sandbox    string // its folder
	length     time.Duration
	objects    int
	rate       int
	seed       uint64
	docs       string
	inventory  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	opts, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, opts)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	opts := &options{kubeconfig: os.Getenv("KUBECONFIG"), sandbox: os.Getenv("ANYKIND_SANDBOX")}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	minutes := flags.Float64("minutes", 25, "how long the churn and the faults last")
	flags.IntVar(&opts.objects, "objects", 10_000, "objects of all resources together")
	flags.IntVar(&opts.rate, "rate", 150, "changes a second")
	flags.Uint64Var(&opts.seed, "seed", 1, "of the changes and the faults")
	flags.StringVar(&opts.docs, "docs", "", "the folder whose RELIABILITY.md gets the result, INVENTORY.md with -inventory")
	flags.BoolVar(&opts.inventory, "inventory", false, "run a cache of all kinds, with the definitions of the corpus, and compare it with kubectl")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	opts.length = time.Duration(*minutes * float64(time.Minute))
	switch {
	case opts.kubeconfig == "" || opts.sandbox == "":
		return nil, errors.New("no sandbox is given (run `make soak`)")
	case opts.objects < 100 || opts.rate < 1 || opts.length <= 0:
		return nil, errors.New("-objects must be at least 100, -rate and -minutes positive")
	}
	return opts, nil
}

func run(ctx context.Context, opts *options) error {
	dir, err := os.MkdirTemp("", "anykind-soak-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	world, err := newWorld(ctx, opts)
	if err != nil {
		return err
	}
	defer world.conn.Close()
	progress("writing %d objects", opts.objects)
	if err := world.prepare(ctx); err != nil {
		return err
	}
	user, err := world.newUser(ctx, dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if opts.inventory {
		return runInventory(ctx, dir, world, user)
	}
	sides, err := startSides(ctx, dir, []string{"ours", "theirs"}, &soak.Config{Kubeconfig: user.kubeconfig, Sources: world.sources()})
	if err != nil {
		return err
	}
	if err := awaitEqual(ctx, world, sides); err != nil {
		return fmt.Errorf("before the churn: %w", err)
	}
	result := &result{opts: opts, began: time.Now(), samples: map[string][]soak.Sample{}}
	if err := churnAndSample(ctx, world, user, sides, result); err != nil {
		return err
	}
	if err := awaitEqual(ctx, world, sides); err != nil {
		return err
	}
	for _, side := range sides {
		left, err := side.stop()
		if err != nil {
			return err
		}
		result.left = append(result.left, left)
	}
	fmt.Print(result.table())
	if opts.docs != "" {
		return write(filepath.Join(opts.docs, "RELIABILITY.md"), result.table())
	}
	return nil
}

// churnAndSample changes objects, injects faults and samples both sides for the length of the soak.
func churnAndSample(ctx context.Context, world *world, user *user, sides []*process, result *result) error {
	within, stop := context.WithTimeout(ctx, result.opts.length)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { world.churn(within) })
	all.Go(func() { world.inject(within, user, rand.New(rand.NewPCG(result.opts.seed, 2))) }) //nolint:gosec // a schedule that can be repeated
	defer all.Wait()
	defer stop()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		for _, side := range sides {
			sample, err := side.sample()
			if err != nil {
				return err
			}
			if sample.Trouble != "" {
				return fmt.Errorf("%s: a cache ended: %s", side.name, sample.Trouble)
			}
			result.samples[side.name] = append(result.samples[side.name], *sample)
		}
		select {
		case <-ticker.C:
		case <-within.Done():
			stop()
			all.Wait()
			result.changes = world.changes.Load()
			result.faults = world.faultCounts()
			return ctx.Err()
		}
	}
}

// awaitEqual waits until every cache of both sides equals the server.
func awaitEqual(ctx context.Context, world *world, sides []*process) error {
	for _, side := range sides {
		began := time.Now()
		for {
			different, err := compare(ctx, world, side)
			if err != nil {
				return err
			}
			if different == "" {
				progress("%s equals the server after %s", side.name, time.Since(began).Round(100*time.Millisecond))
				break
			}
			if time.Since(began) > 2*time.Minute {
				return fmt.Errorf("%s differs from the server after two minutes: %s", side.name, different)
			}
			time.Sleep(500 * time.Millisecond)
		}
	}
	return nil
}

// compare returns the first difference between a side and the server, "" if there is none.
func compare(ctx context.Context, world *world, side *process) (different string, err error) {
	versions, err := side.versions()
	if err != nil {
		return "", err
	}
	for _, source := range world.sources() {
		want, err := world.list(ctx, source)
		if err != nil {
			return "", err
		}
		got := versions[source.String()]
		if len(got) != len(want) {
			return fmt.Sprintf("%s: %d objects, the server has %d", source, len(got), len(want)), nil
		}
		for key, version := range want {
			if got[key] != version {
				return fmt.Sprintf("%s: %s has resourceVersion %q, on the server %q", source, key, got[key], version), nil
			}
		}
	}
	return "", nil
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "soak: %s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
