// Command explain describes a kind or a field of it, like kubectl explain:
//
//	explain [-details] TYPE [FIELD.FIELD…]
//	explain -f FILE
//
// With -f it writes a Markdown page for each kind of the CustomResourceDefinitions in a file, without a cluster.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/anykind/anykind/discovery"
	"github.com/anykind/anykind/restmapper"
	"github.com/anykind/anykind/schema"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

func main() {
	details := flag.Bool("details", false, "print defaults, constraints and rules, too")
	file := flag.String("f", "", "a `file` with CustomResourceDefinitions in YAML or JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *file != "" && flag.NArg() == 0:
		err = writePages(ctx, *file, os.Stdout)
	case *file == "" && (flag.NArg() == 1 || flag.NArg() == 2):
		err = explain(ctx, flag.Arg(0), flag.Arg(1), *details, os.Stdout)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// explain explains a type of the cluster, or a field of it.
func explain(ctx context.Context, name, field string, details bool, out io.Writer) error {
	cfg, err := transport.Load(ctx, nil)
	if err != nil {
		return err
	}
	conn, err := transport.Open(cfg)
	if err != nil {
		return err
	}
	defer conn.Close()
	resource, err := restmapper.New(discovery.New(conn, nil)).Resource(ctx, name)
	if err != nil {
		return err
	}
	var path []string
	if field != "" {
		path = strings.Split(field, ".")
	}
	explanation, err := schema.New(conn, nil).Explain(ctx, resource.GVK, path, nil)
	if err != nil {
		return err
	}
	return explanation.WriteText(out, &schema.TextOptions{Details: details})
}

// writePages writes a page for each kind of the definitions in a file.
func writePages(ctx context.Context, path string, out io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var definitions []*unstructured.Object
	for definition, err := range unstructured.NewYAMLDecoder(file).All() {
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		definitions = append(definitions, definition)
	}
	offline, err := schema.NewOffline("")
	if err != nil {
		return err
	}
	schemas, err := offline.WithDefinitions(definitions...)
	if err != nil {
		return err
	}
	kinds, err := schemas.Kinds(ctx)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		explanation, err := schemas.Explain(ctx, kind, nil, &schema.ExplainOptions{Recursive: true})
		if err != nil {
			return err
		}
		if err := explanation.WriteMarkdown(out); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return nil
}
