// Command anyctl-copy copies clusters and works with the copies. anyctl starts it: `anyctl copy` is `anyctl-copy save`, `anyctl rehearse`
// is `anyctl-copy rehearse`, `anyctl crd check` is `anyctl-copy crd-check`, and `anyctl plan` asks `anyctl-copy serve`. It is a program of its own because it contains an API server.
//
//	anyctl-copy save [flags] FILE           copies a cluster to a file
//	anyctl-copy serve [flags] [FILE]        serves a copy until stdin is closed, and prints the path of a kubeconfig
//	anyctl-copy rehearse [flags] -- CMD ... runs a controller against a copy and prints its writes
//	anyctl-copy crd-check [flags] -f FILE   compares new definitions with the live objects of a cluster
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/apitest/cel"
	"github.com/anykind/anykind/apitest/clustercopy"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/transport"
)

// exitUsage is the exit code after a wrong command line.
const exitUsage = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Errors that were already printed.
var (
	errUsage    = errors.New("usage")
	errFindings = errors.New("findings")
)

// program is a run of a command.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          *flag.FlagSet

	kubeconfig, kubeContext         string
	resources, namespaces, selector string
	secretData                      bool
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr}
	commands := map[string]func(context.Context, []string) error{"save": p.save, "serve": p.serve, "rehearse": p.rehearse, "crd-check": p.crdCheck}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	command := commands[name]
	if command == nil {
		fmt.Fprint(stderr, "anyctl-copy copies clusters and works with the copies.\n\nUsage:\n"+
			"  anyctl-copy save [flags] FILE            copy a cluster to a file\n"+
			"  anyctl-copy serve [flags] [FILE]         serve a copy until stdin is closed\n"+
			"  anyctl-copy rehearse [flags] -- CMD ...  run a controller against a copy and print what it wrote\n"+
			"  anyctl-copy crd-check [flags] -f FILE    compare new definitions with the live objects of a cluster\n\n"+
			"`anyctl-copy COMMAND -h` lists the flags.\n")
		return exitUsage
	}
	p.flags = flag.NewFlagSet("anyctl-copy "+name, flag.ContinueOnError)
	p.flags.SetOutput(stderr)
	p.flags.StringVar(&p.kubeconfig, "kubeconfig", "", "`path` of the kubeconfig, by default as kubectl's")
	p.flags.StringVar(&p.kubeContext, "context", "", "`name` of the kubeconfig's context")
	if name != "crd-check" {
		p.addSelection()
	}
	switch err := command(ctx, args[1:]); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errFindings):
		return 1
	default:
		fmt.Fprintln(stderr, "anyctl-copy:", err)
		return 1
	}
}

// addSelection adds the flags for the objects to copy.
func (p *program) addSelection() {
	p.flags.StringVar(&p.resources, "resources", "", "comma-separated `names` of resources to copy, such as deploy,pods; by default all but events and leases")
	p.flags.StringVar(&p.namespaces, "namespaces", "", "comma-separated `namespaces` to copy, by default all")
	p.flags.StringVar(&p.selector, "selector", "", "label `selector` of the objects to copy")
	p.flags.BoolVar(&p.secretData, "secret-data", false, "copy the values of Secrets, too, not only their keys")
}

// parse returns the arguments after the flags, at least and at most so many.
func (p *program) parse(args []string, least, most int) ([]string, error) {
	if err := p.flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, errUsage
	}
	if count := p.flags.NArg(); count < least || count > most {
		fmt.Fprintf(p.stderr, "%s: %d arguments (see `%s -h`)\n", p.flags.Name(), count, p.flags.Name())
		return nil, errUsage
	}
	return p.flags.Args(), nil
}

// save copies a cluster to a file.
func (p *program) save(ctx context.Context, args []string) error {
	rest, err := p.parse(args, 1, 1)
	if err != nil {
		return err
	}
	copied, err := p.copyCluster(ctx)
	if err != nil {
		return err
	}
	for _, omission := range copied.Omitted {
		if omission.ByDefault {
			fmt.Fprintln(p.stderr, "not copied:", omission)
		}
	}
	if err := copied.WriteFile(rest[0]); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "%d objects of %d resources copied to %s\n", len(copied.Objects), len(copied.Resources), rest[0])
	return nil
}

// serve serves a copy until stdin is closed or ctx ends.
func (p *program) serve(ctx context.Context, args []string) error {
	rest, err := p.parse(args, 0, 1)
	if err != nil {
		return err
	}
	server, err := p.start(ctx, rest)
	if err != nil {
		return err
	}
	defer server.Close()
	path, remove, err := writeKubeconfig(server)
	if err != nil {
		return err
	}
	defer remove()
	fmt.Fprintln(p.stdout, path)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, p.stdin)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	return nil
}

// writeKubeconfig writes the kubeconfig of a server to a temporary folder.
func writeKubeconfig(server *apitest.Server) (path string, remove func(), err error) {
	data, err := server.KubeconfigData()
	if err != nil {
		return "", nil, err
	}
	folder, err := os.MkdirTemp("", "anyctl-copy-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		_ = os.RemoveAll(folder)
		return "", nil, err
	}
	return path, func() { _ = os.RemoveAll(folder) }, nil
}

// start starts a server of the copy in a file, or of the cluster without a file.
func (p *program) start(ctx context.Context, file []string) (*apitest.Server, error) {
	copied, err := p.source(ctx, file)
	if err != nil {
		return nil, err
	}
	server, err := apitest.Start(serverOptions(copied)) //nolint:contextcheck // the server runs until Close
	if err != nil {
		return nil, err
	}
	for _, difference := range server.CopyDifferences() {
		fmt.Fprintln(p.stderr, "differs from the cluster:", difference)
	}
	return server, nil
}

// serverOptions disables webhooks: the copy has no pods of theirs.
func serverOptions(copied *clustercopy.Copy) *apitest.Options {
	return &apitest.Options{
		Copy: copied, Rules: cel.Rules{}, Policies: &cel.Policies{}, DisableWebhooks: true,
		Controllers: apitest.GarbageCollection | apitest.NamespaceDeletion,
	}
}

// source returns the copy in a file, or that of the cluster without a file.
func (p *program) source(ctx context.Context, file []string) (*clustercopy.Copy, error) {
	if len(file) == 1 && file[0] != "" {
		return clustercopy.ReadFile(file[0])
	}
	return p.copyCluster(ctx)
}

// copyCluster copies the cluster of the flags, and prints what the copy lacks unexpectedly.
func (p *program) copyCluster(ctx context.Context) (copied *clustercopy.Copy, err error) {
	err = p.connect(ctx, func(client *dynamic.Client) error {
		copied, err = clustercopy.From(ctx, client, &clustercopy.Options{
			Resources: split(p.resources), Namespaces: split(p.namespaces), LabelSelector: p.selector, SecretData: p.secretData,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, omission := range copied.Omitted {
		if !omission.ByDefault {
			fmt.Fprintln(p.stderr, "not copied:", omission)
		}
	}
	return copied, nil
}

// connect calls use with a client of the cluster of the flags.
func (p *program) connect(ctx context.Context, use func(*dynamic.Client) error) error {
	cfg, err := transport.Load(ctx, &transport.LoadOptions{Path: p.kubeconfig, Context: p.kubeContext})
	if err != nil {
		return err
	}
	conn, err := transport.Open(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := dynamic.New(conn, nil)
	defer client.Close()
	return use(client)
}

// split returns the parts of a comma-separated flag, nil for "".
func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
