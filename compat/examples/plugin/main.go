// Command kubectl-labels is a kubectl plugin. It prints the labels of objects: kubectl labels TYPE[/NAME] ... [-l SELECTOR]. It
// was written with cli-runtime and migrated to anykind. newGetter is the only new function.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/anykind/anykind/compat/clientgo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if newCommand(streams, newGetter).ExecuteContext(ctx) != nil { // cobra has printed the error
		os.Exit(1)
	}
}

// newGetter returns a getter for the cluster, namespace and user selected by the flags.
func newGetter(ctx context.Context, flags *genericclioptions.ConfigFlags) genericclioptions.RESTClientGetter {
	return clientgo.WrapRESTClientGetter(ctx, flags, nil)
}

// newCommand returns the plugin's command.
func newCommand(
	streams genericiooptions.IOStreams, newGetter func(context.Context, *genericclioptions.ConfigFlags) genericclioptions.RESTClientGetter,
) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	selector := ""
	command := &cobra.Command{
		Use: "kubectl-labels TYPE[/NAME] ...", Short: "Print the labels of objects", Args: cobra.MinimumNArgs(1), SilenceUsage: true,
		RunE: func(command *cobra.Command, args []string) error {
			return printLabels(streams, newGetter(command.Context(), flags), selector, args)
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
