// Command apitest serves the Kubernetes API from a single process, without etcd, for kubectl and programs in any language.
//
//	apitest [flags]                  serves until it is interrupted and prints how to connect
//	apitest [flags] exec -- CMD ...  runs CMD with KUBECONFIG set and exits with its code
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/clustercopy"
)

// exitCode is an error without a message: the exit code of the program.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	var code exitCode
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		fmt.Fprintln(os.Stderr, "apitest:", err)
		os.Exit(1)
	}
}

// settings are the flags and arguments of the command line.
type settings struct {
	files      []string
	copyFile   string
	kubeconfig string
	rbac       bool
	controller bool
	shop       bool
	quiet      bool
	stderr     io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("apitest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { usage(flags) }
	flags.Func("f", "`file` or folder with objects, in YAML or JSON, that exist from the start; may be repeated", func(path string) error {
		s.files = append(s.files, path)
		return nil
	})
	flags.StringVar(&s.copyFile, "copy", "", "`file` with the copy of a cluster (package clustercopy), whose objects are served as they are")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "`path` to write the kubeconfig to, instead of a temporary folder; a file that apitest did not write is not replaced")
	flags.BoolVar(&s.rbac, "rbac", false, "authorize by the stored RBAC objects; the kubeconfig's user may do everything")
	flags.BoolVar(&s.controller, "controllers", false, "simulate garbage collection, namespace deletion, service accounts, workloads and pods")
	flags.BoolVar(&s.shop, "shop", true, "with -controllers and without -f and -copy: serve a small shop in the namespace default, to try programs with")
	flags.BoolVar(&s.quiet, "hide-warnings", false, "leave out the warnings of what is not validated as by a real server")
	s.stderr = stderr
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return exitCode(2)
	}
	rest := flags.Args()
	if len(rest) == 0 {
		return serve(ctx, s, stdout)
	}
	if rest[0] == "exec" {
		command := rest[1:]
		if len(command) > 0 && command[0] == "--" {
			command = command[1:]
		}
		if len(command) > 0 {
			return execute(ctx, s, command)
		}
	}
	flags.Usage()
	return exitCode(2)
}

func usage(flags *flag.FlagSet) {
	out := flags.Output()
	fmt.Fprint(out, `apitest serves the Kubernetes API from one process, for tests and for trying things out.

Usage:
  apitest [flags]                  serve until interrupted, and print how to connect
  apitest [flags] exec -- CMD ...  run CMD with KUBECONFIG and KUBECACHEDIR set, and exit as CMD does

Flags:
`)
	flags.PrintDefaults()
}

// newOptions returns the options of the server, and whether it has the shop.
func newOptions(s settings) (opts *apitest.Options, hasShop bool, err error) {
	opts = &apitest.Options{RBAC: s.rbac}
	if opts.Objects, err = readObjects(s.files); err != nil {
		return nil, false, err
	}
	if s.quiet {
		opts.OnNotValidated = func(apitest.Request, string) {}
	}
	if s.controller {
		opts.Controllers = apitest.AllControllers
	}
	hasShop = s.shop && s.controller && len(s.files) == 0 && s.copyFile == ""
	if hasShop {
		opts.Streams = shopStreams()
		opts.Objects, err = shopObjects()
	} else if s.copyFile != "" {
		opts.Copy, err = clustercopy.ReadFile(s.copyFile)
	}
	return opts, hasShop, err
}

// start starts the server and writes its kubeconfig. stop closes the server and removes the written files.
func start(s settings) (path string, stop func(), err error) {
	opts, hasShop, err := newOptions(s)
	if err != nil {
		return "", nil, err
	}
	if s.kubeconfig != "" { // before the server starts
		if _, err := replaceable(s.kubeconfig); err != nil {
			return "", nil, err
		}
	}
	if opts.Copy != nil {
		for _, omission := range opts.Copy.Omitted {
			fmt.Fprintln(s.stderr, "apitest: not in the copy:", omission)
		}
	}
	server, err := apitest.Start(opts)
	if err != nil {
		return "", nil, err
	}
	for _, difference := range server.CopyDifferences() {
		fmt.Fprintln(s.stderr, "apitest: differs from the cluster:", difference)
	}
	stopShop := func() {}
	if hasShop {
		if err := openShop(server); err != nil {
			server.Close()
			return "", nil, err
		}
		stopShop = deployCanary(server)
	}
	folder, err := os.MkdirTemp("", "apitest-")
	if err != nil {
		stopShop()
		server.Close()
		return "", nil, err
	}
	stop = func() {
		stopShop()
		server.Close()
		_ = os.RemoveAll(folder)
	}
	path = s.kubeconfig
	if path == "" {
		path = filepath.Join(folder, "kubeconfig")
	}
	data, err := server.KubeconfigData()
	if err == nil {
		err = writeKubeconfig(path, data)
	}
	if err != nil {
		stop()
		return "", nil, err
	}
	return path, stop, nil
}

// serve prints how to connect and blocks until ctx ends.
func serve(ctx context.Context, s settings, stdout io.Writer) error {
	path, stop, err := start(s) //nolint:contextcheck // the server ends with stop
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(stdout, "The API server is ready:\n\n  export KUBECONFIG=%s\n\nIt and its objects are gone after an interrupt.\n", path)
	<-ctx.Done()
	return nil
}

// execute runs a command with its own server.
func execute(ctx context.Context, s settings, command []string) error {
	path, stop, err := start(s) //nolint:contextcheck // the server ends with stop
	if err != nil {
		return err
	}
	defer stop()
	cache, err := os.MkdirTemp("", "apitest-cache-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+path, "KUBECACHEDIR="+cache)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exitCode(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", strings.Join(command, " "), err)
	}
	return nil
}
