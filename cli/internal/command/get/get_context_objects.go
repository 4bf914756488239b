package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/unstructured"
)

// contextAnnotation has the context of an object of --contexts. It is on no server.
const contextAnnotation = "anykind.dev/context"

// contextObjects are the objects of a context.
type contextObjects struct {
	objects []*unstructured.Object
	errs    []error
}

// printContextObjects prints the objects of several contexts as a list, in the order of --contexts. It holds all of them.
func (c *getCommand) printContextObjects(ctx context.Context, args []string) error {
	isName := c.output.Output == "name"
	printer, err := withContextColumn(c.output).Printer(c.Out)
	if err != nil {
		return err
	}
	read := make([]contextObjects, len(c.contexts))
	var group sync.WaitGroup
	for i, name := range c.contexts {
		group.Go(func() { read[i] = c.readContextObjects(ctx, name, args) })
	}
	group.Wait()
	var all []*unstructured.Object
	failed := false
	for i, one := range read {
		for _, err := range one.errs {
			failed = true
			c.Errorf("context %s: %s", c.contexts[i], exit.Message(err))
		}
		all = append(all, one.objects...)
	}
	switch {
	case isName:
		for _, obj := range all {
			err = errors.Join(err, c.printContextName(printer, obj))
		}
	case len(all) > 0 || !failed:
		err = printer.List(slices.Values(all))
	}
	if err == nil && failed {
		return &exit.Error{Code: 1}
	}
	return err
}

// printContextName prints the context before the name: both are flags and arguments of a next command.
func (c *getCommand) printContextName(printer *print.Printer, obj *unstructured.Object) error {
	if err := c.Printf("--context=%s ", obj.GetAnnotations()[contextAnnotation]); err != nil {
		return err
	}
	return printer.Object(obj)
}

// withContextColumn returns flags whose custom columns begin with the context.
func withContextColumn(output *print.Flags) *print.Flags {
	changed := *output
	if columns, ok := strings.CutPrefix(output.Output, "custom-columns="); ok {
		changed.Output = fmt.Sprintf(`custom-columns=CONTEXT:.metadata.annotations.%s,%s`, strings.ReplaceAll(contextAnnotation, ".", `\.`), columns)
	}
	return &changed
}

// readContextObjects reads the objects of a context and marks them.
func (c *getCommand) readContextObjects(ctx context.Context, name string, args []string) contextObjects {
	own := c.forContext(name)
	defer own.Connection.Close()
	targets, err := own.finder.Targets(ctx, args)
	if err != nil {
		return contextObjects{errs: []error{err}}
	}
	var read contextObjects
	for obj := range own.objects(ctx, targets, &read.errs) {
		markContext(obj, name)
		read.objects = append(read.objects, obj)
	}
	return read
}

// markContext sets the annotation of the context.
func markContext(obj *unstructured.Object, name string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[contextAnnotation] = name
	obj.SetAnnotations(annotations)
}
