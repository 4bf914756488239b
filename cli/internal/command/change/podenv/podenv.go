// Package podenv prints the environment of containers as kubectl set env --list does.
package podenv

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/internal/printable"
	"github.com/anykind/anykind/unstructured"
)

// Printer prints the environment of containers.
type Printer struct {
	*command.State

	// Resolve replaces references by their values.
	Resolve bool

	sources map[string]*unstructured.Object // ConfigMaps and Secrets
}

// Print prints the variables of a container of obj.
func (p *Printer) Print(ctx context.Context, obj *unstructured.Object, container map[string]any) error {
	var text strings.Builder
	fmt.Fprintf(&text, "# %s %s, container %s\n", obj.GetKind(), printable.LineFor(p.Out, obj.GetName()), nested.String(container, "name"))
	failed := map[string][]string{}
	for _, variable := range nested.List(container, "env") {
		name := nested.String(variable, "name")
		value := nested.String(variable, "value")
		source := nested.Map(variable, "valueFrom")
		var err error
		if source != nil && p.Resolve {
			if value, err = p.resolve(ctx, obj, container, source); err != nil {
				message := command.ServerMessage(err)
				failed[message] = append(failed[message], name)
			}
		}
		if source != nil && (!p.Resolve || err != nil) {
			fmt.Fprintf(&text, "# %s from %s\n", name, referenceText(source))
			continue
		}
		fmt.Fprintf(&text, "%s=%s\n", name, value)
	}
	_, err := io.WriteString(p.Out, text.String())
	p.report(failed)
	return err
}

// report prints the variables of each error.
func (p *Printer) report(failed map[string][]string) {
	var lines []string
	for message, names := range failed {
		slices.Sort(names)
		lines = append(lines, fmt.Sprintf("error retrieving reference for %s: %s", strings.Join(names, ", "), message))
	}
	slices.Sort(lines)
	for _, line := range lines {
		p.Errorf("%s", line)
	}
}

// referenceText formats valueFrom of a variable.
func referenceText(source map[string]any) string {
	for _, field := range slices.Sorted(maps.Keys(source)) {
		reference := nested.Map(source, field)
		switch field {
		case "configMapKeyRef":
			return fmt.Sprintf("configmap %v, key %v", reference["name"], reference["key"])
		case "secretKeyRef":
			return fmt.Sprintf("secret %v, key %v", reference["name"], reference["key"])
		case "fieldRef":
			return fmt.Sprintf("field path %v", reference["fieldPath"])
		case "resourceFieldRef":
			return fmt.Sprintf("resource field %v", reference["resource"])
		}
	}
	return "invalid valueFrom"
}
