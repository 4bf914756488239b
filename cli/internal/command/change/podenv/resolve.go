package podenv

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/unstructured"
)

// resolve returns the value of a reference of a container of obj.
func (p *Printer) resolve(ctx context.Context, obj *unstructured.Object, container, source map[string]any) (string, error) {
	for _, field := range slices.Sorted(maps.Keys(source)) {
		reference := nested.Map(source, field)
		name := nested.String(reference, "name")
		key := nested.String(reference, "key")
		switch field {
		case "configMapKeyRef":
			value, found, err := p.value(ctx, "configmaps", obj.GetNamespace(), name, key)
			if err == nil && !found {
				err = fmt.Errorf("key %s not found in config map %s", key, name)
			}
			return value, err
		case "secretKeyRef":
			encoded, found, err := p.value(ctx, "secrets", obj.GetNamespace(), name, key)
			if err == nil && !found {
				err = fmt.Errorf("key %s not found in secret %s", key, name)
			}
			if err != nil {
				return "", err
			}
			value, err := base64.StdEncoding.DecodeString(encoded)
			return string(value), err
		case "fieldRef":
			return fieldValue(obj, nested.String(reference, "fieldPath"))
		case "resourceFieldRef":
			return resourceValue(container, reference)
		}
	}
	return "", errors.New("invalid valueFrom")
}

// value returns a value of a ConfigMap or Secret. Each object is read once.
func (p *Printer) value(ctx context.Context, kind, namespace, name, key string) (value string, found bool, err error) {
	id := kind + "/" + namespace + "/" + name
	obj := p.sources[id]
	if obj == nil {
		handle, err := p.Connection.Handle(ctx, kind)
		if err != nil {
			return "", false, err
		}
		if obj, err = handle.Namespace(namespace).Get(ctx, name, nil); err != nil {
			return "", false, err
		}
		if p.sources == nil {
			p.sources = map[string]*unstructured.Object{}
		}
		p.sources[id] = obj
	}
	value, found = nested.Map(obj.Object, "data")[key].(string)
	return value, found, nil
}

// fieldValue returns a field of the metadata of obj. As in kubectl, the object has the pod template.
func fieldValue(obj *unstructured.Object, path string) (string, error) {
	field, subscript, hasSubscript := strings.Cut(path, "['")
	key, isClosed := strings.CutSuffix(subscript, "']")
	values := map[string]map[string]string{"metadata.annotations": obj.GetAnnotations(), "metadata.labels": obj.GetLabels()}
	if all, isMap := values[field]; isMap {
		if hasSubscript && isClosed {
			return all[key], nil
		}
		if !hasSubscript {
			var lines []string
			for _, name := range slices.Sorted(maps.Keys(all)) {
				lines = append(lines, name+"="+strconv.Quote(all[name]))
			}
			return strings.Join(lines, "\n"), nil
		}
	}
	switch path {
	case "metadata.name":
		return obj.GetName(), nil
	case "metadata.namespace":
		return obj.GetNamespace(), nil
	case "metadata.uid":
		return string(obj.GetUID()), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// resourceValue returns a limit or request of a container in units of the divisor, rounded up.
func resourceValue(container, reference map[string]any) (string, error) {
	path := nested.String(reference, "resource")
	list, name, _ := strings.Cut(path, ".")
	isKnown := name == "cpu" || name == "memory" || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-")
	if list != "limits" && list != "requests" || !isKnown {
		return "", fmt.Errorf("unsupported container resource : %v", path)
	}
	quantity, err := parseQuantity(nested.Value(container, "resources", list, name), "0")
	if err != nil {
		return "", err
	}
	divisor, err := parseQuantity(reference["divisor"], "1")
	if err != nil {
		return "", err
	}
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	value := quantity.Value()
	unit := divisor.Value()
	if name == "cpu" {
		value = quantity.MilliValue()
		unit = divisor.MilliValue()
	}
	return strconv.FormatInt((value+unit-1)/unit, 10), nil
}

func parseQuantity(value any, missing string) (resource.Quantity, error) {
	if value == nil {
		value = missing
	}
	return resource.ParseQuantity(fmt.Sprint(value))
}
