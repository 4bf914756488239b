//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/anykind/anykind/sandbox/cluster"
)

const statusText = `Prints what is running and where. Exits with 1 if the cluster is not running or a
component is not ready.`

func status(ctx context.Context, args []string) error {
	flags := newFlags("status", "[--name NAME] [--json]", statusText)
	name := flags.String("name", defaultName, "`name` of the cluster")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	dir, err := findCluster(*name)
	if err != nil {
		return err
	}
	var s cluster.Status
	if err := call(ctx, dir, http.MethodGet, "/status", nil, &s); err != nil {
		return err
	}
	if *asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(&s)
	} else {
		err = printStatus(os.Stdout, &s)
	}
	if err == nil && !s.Ready {
		return exitCode(1)
	}
	return err
}

func printStatus(w io.Writer, s *cluster.Status) error {
	fmt.Fprintf(w, "Kubernetes %s in %s\n", s.Kubernetes, s.Dir)
	for _, path := range s.Kubeconfigs {
		fmt.Fprintf(w, "KUBECONFIG=%s\n", path)
	}
	if s.Kubectl != "" {
		fmt.Fprintf(w, "ANYKIND_KUBECTL=%s\n", s.Kubectl)
	}
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "\nCOMPONENT\tVERSION\tSTATE\tPID\tURL")
	for _, c := range s.Components {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", c.Name, c.Version, c.State, c.Pid, c.URL)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, c := range s.Components {
		if c.Error != "" {
			fmt.Fprintf(w, "\n%s\n", c.Error)
		}
	}
	return nil
}

func restart(ctx context.Context, args []string) error {
	flags := newFlags("restart", "[flags] COMPONENT", "Restarts a component on the same port, with its data, and waits until it is ready.")
	name := flags.String("name", defaultName, "`name` of the cluster")
	kill := flags.Bool("kill", false, "with SIGKILL, as in a crash")
	component, err := parseComponent(flags, args)
	if err != nil {
		return err
	}
	dir, err := findCluster(*name)
	if err != nil {
		return err
	}
	query := url.Values{"component": {component}, "kill": {strconv.FormatBool(*kill)}}
	return call(ctx, dir, http.MethodPost, "/restart", query, &cluster.Status{})
}

func compact(ctx context.Context, args []string) error {
	flags := newFlags("compact", "[--name NAME]", "Compacts etcd to its newest revision and prints that.")
	name := flags.String("name", defaultName, "`name` of the cluster")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	dir, err := findCluster(*name)
	if err != nil {
		return err
	}
	var response struct{ Revision string }
	if err := call(ctx, dir, http.MethodPost, "/compact", nil, &response); err != nil {
		return err
	}
	fmt.Println(response.Revision)
	return nil
}

func logs(ctx context.Context, args []string) error {
	flags := newFlags("logs", "[--name NAME] COMPONENT", "Prints the log of a component.")
	name := flags.String("name", defaultName, "`name` of the cluster")
	component, err := parseComponent(flags, args)
	if err != nil {
		return err
	}
	dir, err := findCluster(*name)
	if err != nil {
		return err
	}
	var s cluster.Status
	if err := call(ctx, dir, http.MethodGet, "/status", nil, &s); err != nil {
		return err
	}
	for _, c := range s.Components {
		if c.Name == component {
			return printFile(c.Log)
		}
	}
	return fmt.Errorf("no component %q in this cluster (`sandbox status` lists them)", component)
}

// parseComponent parses the flags and a single argument, a component's name. Flags may follow it.
func parseComponent(flags *flag.FlagSet, args []string) (string, error) {
	if err := parse(flags, args); err != nil {
		return "", err
	}
	component := flags.Arg(0)
	if component == "" {
		return "", fmt.Errorf("%s: missing component (`sandbox status` lists them)", flags.Name())
	}
	if err := errors.Join(parse(flags, flags.Args()[1:]), noArguments(flags)); err != nil {
		return "", err
	}
	return component, nil
}

func printFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer file.Close()
	_, err = io.Copy(os.Stdout, file)
	return err
}

func buildOnly(ctx context.Context, args []string) error {
	var opts cluster.Options
	flags := newFlags("build", "[flags]", "Builds the programs that up and exec need with the same flags.")
	clusterFlags(flags, &opts)
	links := flags.String("links", "", "create links to the programs in `folder`, named as envtest's KUBEBUILDER_ASSETS has them")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	opts.Progress = os.Stderr
	if *links != "" {
		return cluster.Link(ctx, &opts, *links)
	}
	return cluster.Build(ctx, &opts)
}

func versions(_ context.Context, args []string) error {
	flags := newFlags("versions", "", "Prints a release of each minor version of Kubernetes that the sandbox supports,\noldest first.")
	if err := errors.Join(parse(flags, args), noArguments(flags)); err != nil {
		return err
	}
	for _, version := range cluster.KubernetesVersions() {
		fmt.Println(version)
	}
	return nil
}

// call sends a request to the control socket of the cluster in dir and decodes
// the response into result.
func call(ctx context.Context, dir, method, path string, query url.Values, result any) error {
	socket := filepath.Join(dir, cluster.ControlSocketName)
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	target := url.URL{Scheme: "http", Host: "sandbox", Path: path, RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return fmt.Errorf("call the cluster in %s: %w", dir, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error string }
		_ = json.NewDecoder(response.Body).Decode(&failure)
		return errors.New(failure.Error)
	}
	return json.NewDecoder(response.Body).Decode(result)
}

// findCluster returns the folder of a cluster: within exec the folder of exec's cluster, otherwise the folder of the background
// cluster called name.
func findCluster(name string) (string, error) {
	if dir := os.Getenv(clusterDirEnv); dir != "" && name == defaultName {
		return dir, nil
	}
	records, err := openRecords("", name)
	if err != nil {
		return "", err
	}
	running, err := records.read()
	if errors.Is(err, errNotRunning) {
		return "", fmt.Errorf("sandbox %q is not running (start it with: go run -C sandbox . up)", name)
	}
	if err != nil {
		return "", err
	}
	return running.Dir, nil
}
