package builtin

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// The server validates the Events of both groups with the names of the core group's fields, but for the reporting controller.

// validateCoreEvent validates an Event of the core group.
func validateCoreEvent(event, _ object) field.ErrorList {
	c := &checker{}
	c.event(event, "reportingComponent")
	return c.errs
}

// validateEvent validates an Event of events.k8s.io. An update changes only the series.
func validateEvent(event, old object) field.ErrorList {
	event = maps.Clone(event)
	eventToCore(event)
	c := &checker{}
	c.event(event, "reportingController")
	if old != nil {
		old = maps.Clone(old)
		eventToCore(old)
		for _, name := range []string{
			"involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime", "action", "related",
			"reportingComponent", "reportingInstance",
		} {
			at := field.NewPath(name)
			if name == "reportingComponent" {
				at = field.NewPath("reportingController")
			}
			c.add(validation.ValidateImmutableField(event[name], old[name], at)...)
		}
		if !reflect.DeepEqual(event["series"], old["series"]) {
			c.series(nested.Map(event, "series"))
		}
		return c.errs
	}
	c.series(nested.Map(event, "series"))
	if nested.String(event, "eventTime") == "" {
		c.add(field.Required(field.NewPath("eventTime"), ""))
	}
	if kind := nested.String(event, "type"); kind != "Normal" && kind != "Warning" {
		c.invalid(field.NewPath("type"), kind, "must be Normal or Warning")
	}
	for _, name := range []string{"firstTimestamp", "lastTimestamp", "count"} {
		if event[name] != nil {
			c.invalid(field.NewPath(name), event[name], notExamined)
		}
	}
	if len(nested.Map(event, "source")) > 0 {
		c.invalid(field.NewPath("source"), event["source"], notExamined)
	}
	return c.errs
}

// event adds the errors of an Event of either group.
func (c *checker) event(event object, reporting string) {
	own := nested.String(event, "metadata", "namespace")
	namespace := nested.String(event, "involvedObject", "namespace")
	isNew := nested.String(event, "eventTime") != ""
	matches := isNew || own == namespace
	if namespace == "" {
		matches = own == metav1.NamespaceDefault || isNew && own == metav1.NamespaceSystem
	}
	if !matches {
		c.invalid(field.NewPath("involvedObject", "namespace"), namespace, "does not match event.namespace")
	}
	if !isNew {
		return
	}
	controller := nested.String(event, "reportingComponent")
	if controller == "" {
		c.add(field.Required(field.NewPath(reporting), ""))
	}
	c.invalid(field.NewPath(reporting), controller, utilvalidation.IsQualifiedName(controller)...)
	for _, text := range []struct {
		name       string
		limit      int
		isRequired bool
	}{{"reportingInstance", 128, true}, {"action", 128, true}, {"reason", 128, true}, {"message", 1024, false}} {
		value := nested.String(event, text.name)
		if value == "" && text.isRequired {
			c.add(field.Required(field.NewPath(text.name), ""))
		}
		if len(value) > text.limit {
			c.invalid(field.NewPath(text.name), "", "too long")
		}
	}
}

// series adds the errors of a series of Events.
func (c *checker) series(series object) {
	if series == nil {
		return
	}
	if count, _ := series["count"].(int64); count < 2 {
		c.invalid(field.NewPath("series.count"), count, "must be at least 2")
	}
	if nested.String(series, "lastObservedTime") == "" {
		c.add(field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
}
