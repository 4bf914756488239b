package get

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/cli/exit"
	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// eventsCommand is the command events.
type eventsCommand struct {
	*command.State
	output                          *print.Flags
	allNamespaces, watch, noHeaders bool
	forObject                       string
	// owned includes the events of the objects that the object of forObject owns. involved are their UIDs, or nil.
	owned     bool
	involved  sets.Set[types.UID]
	types     []string
	chunkSize int64
}

func newEvents(s *command.State) *cobra.Command {
	c := &eventsCommand{State: s, output: print.NewFlags()}
	cmd := &cobra.Command{Use: "events [--for TYPE/NAME] [--watch] [--types=Normal,Warning]", Short: "List events", RunE: c.run}
	fs := cmd.Flags()
	c.output.AddObjectFlags(fs)
	fs.BoolVarP(&c.watch, "watch", "w", false, "After listing the requested events, watch for more events.")
	fs.BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
	fs.StringVar(&c.forObject, "for", "", "Filter events to only those pertaining to the specified resource.")
	fs.BoolVar(&c.owned, "owned", false, "With --for, also the events of all objects that the object owns, such as the replica sets and pods of a deployment.")
	fs.StringSliceVar(&c.types, "types", nil, "Output only events of given types.")
	fs.BoolVar(&c.noHeaders, "no-headers", false, "When using the default output format, don't print headers.")
	fs.Int64Var(&c.chunkSize, "chunk-size", 500, "Return large lists in chunks rather than all at once.")
	return cmd
}

func (c *eventsCommand) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return command.UsageError(cmd, "unexpected arguments: %v", args)
	}
	for _, eventType := range c.types {
		if !strings.EqualFold(eventType, "Normal") && !strings.EqualFold(eventType, "Warning") {
			return errors.New("valid --types are Normal or Warning")
		}
	}
	ctx := cmd.Context()
	selector, err := c.selector(ctx)
	if err != nil {
		return err
	}
	if c.owned {
		if err := c.findOwned(ctx); err != nil {
			return err
		}
		selector = ""
	}
	events, err := c.Connection.Handle(ctx, "events.v1.")
	if err != nil {
		return err
	}
	if c.allNamespaces {
		events = events.AllNamespaces()
	}
	if c.watch {
		return c.follow(ctx, events, selector)
	}
	var found []*unstructured.Object
	for obj, err := range events.List(ctx, &metav1.ListOptions{FieldSelector: selector, Limit: c.chunkSize}) {
		if err != nil {
			return err
		}
		if c.selects(obj) {
			found = append(found, obj)
		}
	}
	if len(found) == 0 {
		return c.none(ctx)
	}
	sortEvents(found)
	return c.print(found)
}

// selector returns the field selector for --for.
func (c *eventsCommand) selector(ctx context.Context) (string, error) {
	if c.forObject == "" {
		return "", nil
	}
	kind, name, found := strings.Cut(c.forObject, "/")
	if !found {
		return "", errors.New("--for must be in resource/name form")
	}
	if strings.Contains(name, "/") {
		return "", errors.New("arguments in resource/name form may not have more than one slash")
	}
	handle, err := c.Connection.Handle(ctx, kind)
	if err != nil {
		return "", err
	}
	gvk := handle.APIResource().GVK
	return fields.Set{
		"involvedObject.kind": gvk.Kind, "involvedObject.apiVersion": gvk.GroupVersion().String(), "involvedObject.name": name,
	}.AsSelector().String(), nil
}

func (c *eventsCommand) selects(event *unstructured.Object) bool {
	if c.involved != nil && !c.involved.Has(types.UID(nested.String(event.Object, "involvedObject", "uid"))) {
		return false
	}
	return len(c.types) == 0 || slices.ContainsFunc(c.types, func(eventType string) bool {
		return strings.EqualFold(eventType, nested.String(event.Object, "type"))
	})
}

func (c *eventsCommand) none(ctx context.Context) error {
	if c.allNamespaces {
		c.Errorf("No events found.")
		return nil
	}
	namespace, _, err := c.Connection.Namespace(ctx)
	if err != nil {
		return err
	}
	c.Errorf("No events found in %s namespace.", namespace)
	return nil
}

func (c *eventsCommand) print(events []*unstructured.Object) error {
	if c.output.IsDefault() {
		return c.printRows(print.NewColumns(c.Out, c.header()), events)
	}
	printer, err := c.output.Printer(c.Out)
	if err != nil {
		return err
	}
	return printer.List(slices.Values(events))
}

func (c *eventsCommand) printRows(columns *print.Columns, events []*unstructured.Object) error {
	for _, event := range events {
		if err := columns.Row(c.row(event)...); err != nil {
			return err
		}
	}
	return columns.Flush()
}

// follow prints the existing events in the order of their times, and then new events.
func (c *eventsCommand) follow(ctx context.Context, events *dynamic.Resource, selector string) error {
	write, err := c.eventWriter()
	if err != nil {
		return err
	}
	var present []*unstructured.Object
	synced := false
	for change, err := range events.Follow(ctx, &dynamic.FollowOptions{FieldSelector: selector}) {
		switch {
		case err != nil && ctx.Err() != nil:
			return &exit.Error{Code: 1} // as kubectl after an interrupt
		case err != nil:
			return err
		case change.Type == dynamic.Synced && !synced:
			synced = true
			sortEvents(present)
			if err := write(present...); err != nil {
				return err
			}
			present = nil
		case change.Object == nil || change.Type == watch.Deleted || !c.selects(change.Object):
		case synced:
			if err := write(change.Object); err != nil {
				return err
			}
		default:
			present = append(present, change.Object)
		}
	}
	return nil
}

// eventWriter returns a function for writing events without delay. The header precedes the first event.
func (c *eventsCommand) eventWriter() (func(...*unstructured.Object) error, error) {
	if c.output.IsDefault() {
		columns := print.NewColumns(c.Out, c.header())
		return func(events ...*unstructured.Object) error {
			if len(events) == 0 {
				return nil
			}
			return c.printRows(columns, events)
		}, nil
	}
	printer, err := c.output.Printer(c.Out)
	if err != nil {
		return nil, err
	}
	return func(events ...*unstructured.Object) error {
		for _, event := range events {
			if err := printer.Object(event); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func (c *eventsCommand) header() []string {
	if c.noHeaders {
		return nil
	}
	header := []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}
	if c.allNamespaces {
		header = slices.Insert(header, 0, "NAMESPACE")
	}
	return header
}

func (c *eventsCommand) row(event *unstructured.Object) []string {
	row := []string{
		interval(event, time.Now()), nested.String(event.Object, "type"), nested.String(event.Object, "reason"),
		nested.String(event.Object, "involvedObject", "kind") + "/" + nested.String(event.Object, "involvedObject", "name"),
		strings.TrimSpace(nested.String(event.Object, "message")),
	}
	if c.allNamespaces {
		row = slices.Insert(row, 0, event.GetNamespace())
	}
	return row
}

func sortEvents(events []*unstructured.Object) {
	slices.SortStableFunc(events, func(a, b *unstructured.Object) int { return lastTime(a).Compare(lastTime(b)) })
}

// lastTime returns the first of series.lastObservedTime, lastTimestamp and eventTime.
func lastTime(event *unstructured.Object) time.Time {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}} {
		if at, ok := timeAt(event, path...); ok {
			return at
		}
	}
	return time.Time{}
}

func timeAt(event *unstructured.Object, path ...string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, nested.String(event.Object, path...))
	return at, err == nil
}

// interval formats the times of an event as kubectl does: 5s (x3 over 2m).
func interval(event *unstructured.Object, now time.Time) string {
	first := since(event, now, "eventTime")
	if first == unknownTime {
		first = since(event, now, "firstTimestamp")
	}
	if count, found, _ := unstructured.Get[int64](event, "series", "count"); found {
		return fmt.Sprintf("%s (x%d over %s)", since(event, now, "series", "lastObservedTime"), count, first)
	}
	if count, _, _ := unstructured.Get[int64](event, "count"); count > 1 {
		return fmt.Sprintf("%s (x%d over %s)", since(event, now, "lastTimestamp"), count, first)
	}
	return first
}

const unknownTime = "<unknown>"

func since(event *unstructured.Object, now time.Time, path ...string) string {
	at, ok := timeAt(event, path...)
	if !ok {
		return unknownTime
	}
	return duration.HumanDuration(now.Sub(at))
}
