//go:build unix

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/anykind/anykind/sandbox/cluster"
)

// newFlags returns a flag set with synopsis and text at the top of --help. Parse it with parse.
func newFlags(name, synopsis, text string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		flags.SetOutput(os.Stderr)
		defer flags.SetOutput(io.Discard)
		fmt.Fprintf(os.Stderr, "Usage: go run -C sandbox . %s %s\n\n%s\n", name, synopsis, text)
		hasFlags := false
		flags.VisitAll(func(*flag.Flag) { hasFlags = true })
		if hasFlags {
			fmt.Fprintln(os.Stderr, "\nFlags:")
			flags.PrintDefaults()
		}
	}
	return flags
}

// parse parses args and prints --help.
func parse(flags *flag.FlagSet, args []string) error {
	help := flags.Usage
	defer func() { flags.Usage = help }()
	flags.Usage = func() {} // a single line is enough for a wrong flag
	err := flags.Parse(args)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, flag.ErrHelp):
		help()
		return err
	default:
		return fmt.Errorf("%s: %w (see go run -C sandbox . %[1]s --help)", flags.Name(), err)
	}
}

// noArguments rejects arguments after the flags.
func noArguments(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// clusterFlags adds the flags for choosing a cluster. Parse fills opts.
func clusterFlags(flags *flag.FlagSet, opts *cluster.Options) {
	flags.Func("components", "comma-separated `list` of components (default all: etcd,kube-apiserver,kube-controller-manager,kube-scheduler,nodes,kubectl; the last is only built)", func(value string) error {
		for name := range strings.SplitSeq(value, ",") {
			opts.Components = append(opts.Components, cluster.Component(strings.TrimSpace(name)))
		}
		return nil
	})
	flags.StringVar(&opts.KubernetesVersion, "kubernetes-version", "", "Kubernetes `release` to build, such as one that `versions` prints (default "+cluster.DefaultKubernetesVersion+")")
	flags.Func("feature-gates", "comma-separated `GATE=true|false`, for every component that knows the gate", func(value string) error {
		return parseGates(opts, value)
	})
	flags.Func("runtime-config", "comma-separated `KEY=VALUE` for kube-apiserver, such as api/beta=true", func(value string) error {
		return parsePairs(value, func(key, value string) error {
			if opts.RuntimeConfig == nil {
				opts.RuntimeConfig = map[string]string{}
			}
			opts.RuntimeConfig[key] = value
			return nil
		})
	})
	flags.IntVar(&opts.APIServers, "api-servers", 1, "`number` of API servers that share the one etcd")
	flags.IntVar(&opts.Nodes, "nodes", 2, "`number` of fake nodes")
	flags.Func("arg", "`COMPONENT=FLAG` to append to a component's command line, such as kube-apiserver=--v=4; may be repeated", func(value string) error {
		component, arg, ok := strings.Cut(value, "=")
		if !ok {
			return fmt.Errorf("want COMPONENT=FLAG")
		}
		if opts.ExtraArgs == nil {
			opts.ExtraArgs = map[cluster.Component][]string{}
		}
		opts.ExtraArgs[cluster.Component(component)] = append(opts.ExtraArgs[cluster.Component(component)], arg)
		return nil
	})
}

func parseGates(opts *cluster.Options, value string) error {
	return parsePairs(value, func(gate, text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s=%s: want true or false", gate, text)
		}
		if opts.FeatureGates == nil {
			opts.FeatureGates = map[string]bool{}
		}
		opts.FeatureGates[gate] = on
		return nil
	})
}

func parsePairs(value string, each func(key, value string) error) error {
	for pair := range strings.SplitSeq(value, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || key == "" {
			return fmt.Errorf("%q: want KEY=VALUE", pair)
		}
		if err := each(key, value); err != nil {
			return err
		}
	}
	return nil
}
