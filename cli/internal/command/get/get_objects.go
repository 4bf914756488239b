package get

import (
	"context"
	"errors"
	"iter"
	"os"
	"slices"

	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// printObjects writes objects in a format other than a table: a single object alone, several objects as a list.
func (c *getCommand) printObjects(ctx context.Context, targets []resource.Target) error {
	printer, err := c.output.Printer(c.Out)
	if err != nil {
		return err
	}
	if len(targets) == 1 && targets[0].Name != "" && c.isSingleItem() {
		for obj, err := range targets[0].Objects(ctx, nil) {
			if err != nil {
				return c.unlessIgnored(err)
			}
			return printer.Object(obj)
		}
	}
	if c.ignoreNotFound && len(targets) > 0 && targets[0].Name != "" {
		return c.printFound(ctx, printer, targets)
	}
	var errs []error
	err = printer.List(c.objects(ctx, targets, &errs))
	return errors.Join(append(errs, err)...)
}

func (c *getCommand) printFound(ctx context.Context, printer *print.Printer, targets []resource.Target) error {
	var errs []error
	found := slices.Collect(c.objects(ctx, targets, &errs))
	if len(found) > 0 {
		errs = append(errs, printer.List(slices.Values(found)))
	}
	return errors.Join(errs...)
}

// objects yields the objects of all targets and appends errors to errs.
func (c *getCommand) objects(ctx context.Context, targets []resource.Target, errs *[]error) iter.Seq[*unstructured.Object] {
	return func(yield func(*unstructured.Object) bool) {
		for _, target := range targets {
			for obj, err := range target.Objects(ctx, c.listOptions()) {
				if err != nil {
					if err = c.unlessIgnored(err); err != nil {
						*errs = append(*errs, err)
					}
					break
				}
				if !yield(obj) {
					return
				}
			}
		}
	}
}

// isSingleItem reports whether a single object is printed alone instead of in a list: an object named by arguments, or from a
// single file.
func (c *getCommand) isSingleItem() bool {
	if c.finder.Files.IsEmpty() {
		return true
	}
	if len(c.finder.Files.Paths) != 1 || c.finder.Files.Paths[0] == manifest.Stdin {
		return false
	}
	info, err := os.Stat(c.finder.Files.Paths[0])
	return err == nil && !info.IsDir()
}
