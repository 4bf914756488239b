package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// dumpOptions are the options of cluster-info dump.
type dumpOptions struct {
	*command.State

	output        *print.Flags
	directory     string
	namespaces    []string
	allNamespaces bool
	errs          []error
}

func dumpCommand(s *command.State) *cobra.Command {
	o := &dumpOptions{State: s, output: print.NewFlags()}
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Dump relevant information for debugging and diagnosis",
		Long: "Dump nodes, and of each namespace the events, services, workloads, pods and logs. An object or log that cannot be read " +
			"is reported at the end, after everything else is dumped.",
		Example: "  anyctl cluster-info dump --output-directory=/tmp/cluster\n  anyctl cluster-info dump --namespaces=default,shop\n  anyctl cluster-info dump -A",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	fs := cmd.Flags()
	o.output.Output = "json"
	o.output.AddObjectFlags(fs)
	fs.StringVar(&o.directory, "output-directory", "", "Where to output the files.  If empty or '-' uses stdout, otherwise creates a directory hierarchy in that directory")
	fs.StringSliceVar(&o.namespaces, "namespaces", nil, "A comma separated list of namespaces to dump.")
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "If true, dump all namespaces.  If true, --namespaces is ignored.")
	fs.Duration("pod-running-timeout", 0, "Accepted for compatibility with kubectl: logs are read from existing pods only")
	return cmd
}

// dumped are the resources of a namespace, in the order of the output.
var dumped = []struct{ file, resource string }{
	{"events", "events.v1."}, {"replication-controllers", "replicationcontrollers.v1."}, {"services", "services.v1."},
	{"daemonsets", "daemonsets.v1.apps"}, {"deployments", "deployments.v1.apps"}, {"replicasets", "replicasets.v1.apps"}, {"pods", "pods.v1."},
}

func (o *dumpOptions) run(ctx context.Context) error {
	if _, err := o.output.Printer(io.Discard); err != nil {
		return err
	}
	nodes, err := o.Connection.Handle(ctx, "nodes")
	if err != nil {
		return err
	}
	o.list(ctx, nodes, "nodes", nil)
	namespaces, err := o.dumpedNamespaces(ctx)
	o.fail(err)
	for _, namespace := range namespaces {
		for _, resource := range dumped {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			handle, err := o.Connection.Handle(ctx, resource.resource)
			if err != nil {
				o.fail(err)
				continue
			}
			var visit func(*unstructured.Object)
			var pods []loggedPod
			if resource.file == "pods" {
				visit = func(pod *unstructured.Object) { pods = append(pods, newLoggedPod(pod)) }
			}
			o.list(ctx, handle.Namespace(namespace), filepath.Join(namespace, resource.file), visit)
			for _, pod := range pods {
				o.fail(o.logs(ctx, handle.Namespace(namespace), pod))
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
	}
	if o.toFiles() {
		if err := o.Printf("Cluster info dumped to %s\n", o.directory); err != nil {
			return err
		}
	}
	return errors.Join(o.errs...)
}

func (o *dumpOptions) fail(err error) {
	if err != nil {
		o.errs = append(o.errs, err)
	}
}

func (o *dumpOptions) toFiles() bool { return o.directory != "" && o.directory != "-" }

func (o *dumpOptions) dumpedNamespaces(ctx context.Context) ([]string, error) {
	if !o.allNamespaces {
		if len(o.namespaces) > 0 {
			return o.namespaces, nil
		}
		current, _, err := o.Connection.Namespace(ctx)
		return []string{systemNamespace, current}, err
	}
	handle, err := o.Connection.Handle(ctx, "namespaces")
	if err != nil {
		return nil, err
	}
	var names []string
	for obj, err := range handle.Metadata().List(ctx, nil) {
		if err != nil {
			return names, err
		}
		names = append(names, obj.GetName())
	}
	return names, nil
}

// list writes the objects of a resource, one at a time. visit is called with each object.
func (o *dumpOptions) list(ctx context.Context, resource *dynamic.Resource, file string, visit func(*unstructured.Object)) {
	o.fail(o.write(file+"."+o.extension(), func(w io.Writer) error {
		printer, err := o.output.Printer(w)
		if err != nil {
			return err
		}
		var failed error
		err = printer.List(func(yield func(*unstructured.Object) bool) {
			for obj, err := range resource.List(ctx, &metav1.ListOptions{Limit: dumpPage}) {
				if err != nil {
					failed = fmt.Errorf("list %s: %w", resource, err)
					return
				}
				if visit != nil {
					visit(obj)
				}
				if !yield(obj) {
					return
				}
			}
		})
		return errors.Join(err, failed)
	}))
}

// dumpPage is the number of objects of a request.
const dumpPage = 500

func (o *dumpOptions) extension() string {
	if format := cmp.Or(o.output.Output, "json"); format == "json" || format == "yaml" {
		return format
	}
	return "txt"
}

// loggedPod is a pod with the names of its containers.
type loggedPod struct {
	namespace, name string
	containers      []string
}

func newLoggedPod(pod *unstructured.Object) loggedPod {
	containers, _ := unstructured.GetAll[string](pod, "spec", "initContainers", "[*]", "name") // a pod from the server has names
	more, _ := unstructured.GetAll[string](pod, "spec", "containers", "[*]", "name")
	return loggedPod{pod.GetNamespace(), pod.GetName(), append(containers, more...)}
}

// logs writes the logs of a pod's containers. An error is written in place of the log, as in kubectl.
func (o *dumpOptions) logs(ctx context.Context, pods *dynamic.Resource, pod loggedPod) error {
	return o.write(filepath.Join(pod.namespace, pod.name, "logs.txt"), func(w io.Writer) error {
		for _, name := range pod.containers {
			title := fmt.Sprintf("logs for container %s of pod %s/%s ====\n", name, pod.namespace, pod.name)
			if _, err := io.WriteString(w, "==== START "+title); err != nil {
				return err
			}
			log, err := stream.Logs(ctx, pods, pod.name, &stream.LogOptions{Container: name})
			if err == nil {
				_, err = io.Copy(w, log)
				_ = log.Close()
			}
			if err != nil {
				_, _ = fmt.Fprintf(w, "Request log error: %s\n", command.ServerMessage(err))
			}
			if _, err := io.WriteString(w, "==== END "+title); err != nil {
				return err
			}
		}
		return nil
	})
}

// write calls a function with the standard output or a new file below the directory.
func (o *dumpOptions) write(file string, write func(io.Writer) error) error {
	if !o.toFiles() {
		return errors.Join(write(o.Out), printable.Flush(o.Out))
	}
	if !filepath.IsLocal(file) {
		return fmt.Errorf("dump %q: the name of the object leads out of %s", file, o.directory)
	}
	path := filepath.Join(o.directory, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as kubectl
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
