// Command pod works like kubectl's commands exec, logs, cp and port-forward:
//
//	pod [-n NAMESPACE] [-c CONTAINER] exec [-i] [-t] POD COMMAND [ARGUMENT…]
//	pod [-n NAMESPACE] [-c CONTAINER] logs [-f] [-p] [-tail N] POD
//	pod [-n NAMESPACE] [-c CONTAINER] logs [-f] [-p] [-tail N] -l SELECTOR
//	pod [-n NAMESPACE] [-c CONTAINER] cp POD:PATH LOCAL
//	pod [-n NAMESPACE] [-c CONTAINER] cp LOCAL POD:PATH
//	pod [-n NAMESPACE] port-forward POD|RESOURCE/NAME [LOCAL:]PORT
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	var exited *stream.ExitError
	switch {
	case errors.As(err, &exited):
		os.Exit(exited.Code)
	case err != nil && ctx.Err() == nil && !errors.Is(err, flag.ErrHelp):
		log.Fatal(err)
	}
}

// streams are the program's input and output.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// pod has the common arguments of all commands.
type pod struct {
	streams
	client    *dynamic.Client
	pods      *dynamic.Resource
	namespace string // "" means the kubeconfig's namespace
	container string
}

var errUsage = errors.New("usage: pod [-n NAMESPACE] [-c CONTAINER] exec|logs|cp|port-forward …")

func run(ctx context.Context, args []string, own streams) error {
	flags := flag.NewFlagSet("pod", flag.ContinueOnError)
	flags.SetOutput(own.err)
	namespace := flags.String("n", "", "the namespace; the kubeconfig's if empty")
	container := flags.String("c", "", "the container; the default one if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	commands := map[string]func(context.Context, *pod, []string) error{
		"exec": execute, "logs": logs, "cp": copyFiles, "port-forward": portForward,
	}
	command := commands[flags.Arg(0)]
	if command == nil {
		return errUsage
	}
	client, err := dynamic.Connect(ctx, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	pods, err := client.Resource(ctx, "pods")
	if err != nil {
		return err
	}
	if *namespace != "" {
		pods = pods.Namespace(*namespace)
	}
	return command(ctx, &pod{own, client, pods, *namespace, *container}, flags.Args()[1:])
}

func (p *pod) flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet("pod "+name, flag.ContinueOnError)
	flags.SetOutput(p.err)
	return flags
}

// execute runs a command in a container.
func execute(ctx context.Context, p *pod, args []string) error {
	flags := p.flags("exec")
	input := flags.Bool("i", false, "forward standard input")
	tty := flags.Bool("t", false, "run the command with a terminal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("usage: pod exec [-i] [-t] POD COMMAND [ARGUMENT…]")
	}
	cmd := stream.Command(ctx, p.pods, flags.Arg(0), flags.Args()[1:]...)
	cmd.Container = p.container
	cmd.Stdout = p.out
	cmd.Stderr = p.err
	if *input {
		cmd.Stdin = p.in
	}
	if *tty {
		terminal := rawTerminal(ctx)
		defer terminal.restore()
		cmd.TTY = true
		cmd.Resize = terminal.sizes
	}
	return cmd.Run()
}

// logs prints the log of a pod, or of all pods matched by a selector.
func logs(ctx context.Context, p *pod, args []string) error {
	opts := stream.LogOptions{Container: p.container}
	flags := p.flags("logs")
	flags.StringVar(&opts.Selector, "l", "", "print the logs of all pods that the label selector matches")
	flags.BoolVar(&opts.Follow, "f", false, "follow the log")
	flags.BoolVar(&opts.Previous, "p", false, "print the log from before the last restart")
	tail := flags.Int64("tail", -1, "print the last lines only")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *tail >= 0 {
		opts.TailLines = tail
	}
	if opts.Selector != "" {
		for line, err := range stream.LogLines(ctx, p.pods, &opts) {
			if err != nil {
				return err
			}
			fmt.Fprintf(p.out, "%s/%s: %s\n", line.Pod, line.Container, line.Text)
		}
		return nil
	}
	log, err := stream.Logs(ctx, p.pods, flags.Arg(0), &opts)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = io.Copy(p.out, log)
	return err
}
