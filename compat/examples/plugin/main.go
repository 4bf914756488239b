// Command kubectl-labels is a kubectl plugin that prints the labels of objects: kubectl labels TYPE[/NAME] ... [-l SELECTOR]. It
// was written with cli-runtime alone and has moved over to anykind: newGetter is new, and everything else is as it was.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/anykind/anykind/compat/clientgo"
	"github.com/anykind/anykind/compat/restconfig"
	"github.com/anykind/anykind/discovery"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if newCommand(streams, newGetter).ExecuteContext(ctx) != nil { // cobra has printed it
		os.Exit(1)
	}
}

// getter is anykind's getter with the namespace of cli-runtime's flags, --namespace included.
type getter struct {
	*clientgo.RESTClientGetter
	flags *genericclioptions.ConfigFlags
}

// newGetter returns a getter for the cluster that the flags choose.
func newGetter(ctx context.Context, flags *genericclioptions.ConfigFlags) (genericclioptions.RESTClientGetter, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	conn, err := restconfig.ToConn(config)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, conn.Close)
	own, err := clientgo.NewRESTClientGetter(ctx, conn, discovery.New(conn, nil))
	if err != nil {
		return nil, err
	}
	return &getter{own, flags}, nil
}

// ToRawKubeConfigLoader implements genericclioptions.RESTClientGetter.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	return g.flags.ToRawKubeConfigLoader()
}

// newCommand returns the plugin's command. A getter is made once the flags have been parsed.
func newCommand(
	streams genericiooptions.IOStreams, newGetter func(context.Context, *genericclioptions.ConfigFlags) (genericclioptions.RESTClientGetter, error),
) *cobra.Command {
	flags, selector := genericclioptions.NewConfigFlags(true), ""
	command := &cobra.Command{
		Use: "kubectl-labels TYPE[/NAME] ...", Short: "Print the labels of objects", Args: cobra.MinimumNArgs(1), SilenceUsage: true,
		RunE: func(command *cobra.Command, args []string) error {
			getter, err := newGetter(command.Context(), flags)
			if err != nil {
				return err
			}
			return printLabels(streams, getter, selector, args)
		},
	}
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.Flags().StringVarP(&selector, "selector", "l", "", "Labels that the objects must have")
	flags.AddFlags(command.Flags())
	return command
}

func printLabels(streams genericiooptions.IOStreams, getter genericclioptions.RESTClientGetter, selector string, args []string) error {
	namespace, enforced, err := getter.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	builder := resource.NewBuilder(getter).Unstructured().NamespaceParam(namespace).DefaultNamespace().ContinueOnError().
		ResourceTypeOrNameArgs(true, args...).LabelSelectorParam(selector).Flatten().Latest()
	if enforced {
		builder = builder.RequireNamespace()
	}
	return builder.Do().Visit(func(info *resource.Info, err error) error {
		if err != nil {
			return err
		}
		object, err := meta.Accessor(info.Object)
		if err == nil {
			_, err = fmt.Fprintf(streams.Out, "%s\t%s\n", info.ObjectName(), labels.FormatLabels(object.GetLabels()))
		}
		return err
	})
}
