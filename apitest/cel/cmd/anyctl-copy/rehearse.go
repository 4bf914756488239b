package main

import (
	"context"
	"fmt"
	"time"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/apitest/rehearsal"
	"github.com/anykind/anykind/plan"
)

// rehearse runs a controller against a copy and prints what it wrote. With -baseline, it prints what the controller writes differently
// from a baseline, such as its previous version.
func (p *program) rehearse(ctx context.Context, args []string) error {
	var file, baseline, output string
	opts := &rehearsal.Options{}
	text := &plan.TextOptions{}
	p.flags.StringVar(&file, "copy", "", "`file` of anyctl-copy save; by default the cluster is copied")
	p.flags.StringVar(&baseline, "baseline", "", "shell `command` of a different version: print only what differs from its result")
	p.flags.DurationVar(&opts.Quiet, "quiet", 5*time.Second, "`time` without a write that ends the rehearsal")
	p.flags.DurationVar(&opts.Timeout, "timeout", 2*time.Minute, "longest `time` of the rehearsal")
	p.flags.BoolVar(&text.ShowSecrets, "show-secrets", false, "print the values of Secrets")
	p.flags.StringVar(&output, "o", "text", "output `format`: text or json")
	command, err := p.parse(args, 1, maxArguments)
	if err != nil {
		return err
	}
	if output != "text" && output != "json" {
		fmt.Fprintf(p.stderr, "%s: -o %q is not text or json\n", p.flags.Name(), output)
		return errUsage
	}
	copied, err := p.source(ctx, []string{file})
	if err != nil {
		return err
	}
	var first *rehearsal.Report
	if baseline != "" {
		if first, err = p.rehearseOnce(ctx, copied, opts, "sh", "-c", "exec "+baseline); err != nil {
			return fmt.Errorf("baseline: %w", err)
		}
	}
	report, err := p.rehearseOnce(ctx, copied, opts, command[0], command[1:]...)
	if err != nil {
		return err
	}
	if output == "json" {
		return report.WriteJSON(p.stdout, first)
	}
	return report.WriteText(p.stdout, text, first)
}

// maxArguments is no limit.
const maxArguments = 1 << 30

func (p *program) rehearseOnce(ctx context.Context, copied *clustercopy.Copy, opts *rehearsal.Options, name string, args ...string) (*rehearsal.Report, error) {
	server, err := apitest.Start(serverOptions(copied)) //nolint:contextcheck // the server runs until Close
	if err != nil {
		return nil, err
	}
	defer server.Close()
	return rehearsal.Run(ctx, server, rehearsal.Command(p.stderr, name, args...), opts)
}
