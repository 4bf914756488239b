package managedfields

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Entry is an entry of metadata.managedFields.
type Entry struct {
	Manager, Operation, APIVersion, Subresource string
	// Time is in RFC 3339, and "" if unknown.
	Time string
	// Fields is the FieldsV1.
	Fields map[string]any
}

// ManagedFieldsEntry returns the entry without its fields, for selectors of callers.
func (e Entry) ManagedFieldsEntry() metav1.ManagedFieldsEntry {
	entry := metav1.ManagedFieldsEntry{
		Manager: e.Manager, Operation: metav1.ManagedFieldsOperationType(e.Operation), APIVersion: e.APIVersion,
		Subresource: e.Subresource, FieldsType: "FieldsV1",
	}
	if at, err := time.Parse(time.RFC3339, e.Time); err == nil {
		entry.Time = &metav1.Time{Time: at}
	}
	return entry
}

// Operations of an [Entry].
const (
	Apply  = "Apply"
	Update = "Update"
)

// Read returns the entries of an object. An object without managedFields has none.
func Read(obj map[string]any) ([]Entry, error) {
	metadata, isMap := obj["metadata"].(map[string]any)
	if !isMap && obj["metadata"] != nil {
		return nil, fmt.Errorf("%w: metadata is not an object", errMalformed)
	}
	list, isList := metadata["managedFields"].([]any)
	if !isList && metadata["managedFields"] != nil {
		return nil, fmt.Errorf("%w: it is not a list", errMalformed)
	}
	entries := make([]Entry, 0, len(list))
	for i, item := range list {
		entry, err := readEntry(item)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func readEntry(item any) (Entry, error) {
	fields, isMap := item.(map[string]any)
	if !isMap {
		return Entry{}, fmt.Errorf("%w: it is not an object", errMalformed)
	}
	var e Entry
	fieldsType := ""
	for name, into := range map[string]*string{
		"manager": &e.Manager, "operation": &e.Operation, "apiVersion": &e.APIVersion, "subresource": &e.Subresource,
		"time": &e.Time, "fieldsType": &fieldsType,
	} {
		text, isText := fields[name].(string)
		if !isText && fields[name] != nil {
			return Entry{}, fmt.Errorf("%w: %s is not a string", errMalformed, name)
		}
		*into = text
	}
	switch {
	case e.Operation != Apply && e.Operation != Update:
		return Entry{}, fmt.Errorf("%w: unknown operation %q", errMalformed, e.Operation)
	case e.APIVersion == "":
		return Entry{}, fmt.Errorf("%w: no apiVersion", errMalformed)
	case fieldsType != "FieldsV1":
		return Entry{}, fmt.Errorf("%w: unknown fieldsType %q", errMalformed, fieldsType)
	}
	e.Fields, isMap = fields["fieldsV1"].(map[string]any)
	if !isMap && fields["fieldsV1"] != nil {
		return Entry{}, fmt.Errorf("%w: fieldsV1 is not an object", errMalformed)
	}
	return e, validate(e.Fields)
}

// Encode returns the value of metadata.managedFields.
func Encode(entries []Entry) []any {
	list := make([]any, 0, len(entries))
	for _, e := range entries {
		item := map[string]any{
			"manager": e.Manager, "operation": e.Operation, "apiVersion": e.APIVersion,
			"fieldsType": "FieldsV1", "fieldsV1": e.Fields,
		}
		if e.Subresource != "" {
			item["subresource"] = e.Subresource
		}
		if e.Time != "" {
			item["time"] = e.Time
		}
		list = append(list, item)
	}
	return list
}
