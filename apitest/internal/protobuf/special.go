package protobuf

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// special decodes a message whose JSON is no object of its fields.
func (d *decoder) special(form string, data []byte) (any, error) {
	fields := map[int]field{}
	var lists []field
	err := eachField(data, func(number int, value field) error {
		fields[number] = value
		if number == 2 {
			lists = append(lists, value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch form {
	case "time", "micro":
		return decodeTime(form, fields, len(data) == 0), nil
	case "duration":
		return time.Duration(int64(fields[1].number)).String(), nil
	case "quantity":
		return d.text(fields[1].bytes)
	case "intstr":
		if fields[1].number == 1 {
			return d.text(fields[3].bytes)
		}
		return int64(int32(fields[2].number)), nil
	case "json":
		if err := d.charge(jsonByte * len(fields[1].bytes)); err != nil {
			return nil, err
		}
		return decodeJSON(fields[1].bytes)
	case "orbool":
		if schema, found := fields[2]; found {
			return d.schemaProps(schema)
		}
		return fields[1].number != 0, nil
	case "orarray", "orstrings":
		if schema, found := fields[1]; found {
			return d.schemaProps(schema)
		}
		return d.schemaList(form, lists)
	}
	return nil, fmt.Errorf("unknown form %q", form)
}

func (d *decoder) text(data []byte) (any, error) { return string(data), d.charge(len(data)) }

func decodeTime(form string, fields map[int]field, isZero bool) any {
	if isZero {
		return nil
	}
	at := time.Unix(int64(fields[1].number), int64(int32(fields[2].number))).UTC()
	if form == "micro" {
		return at.Format(metav1.RFC3339Micro)
	}
	return at.Format(time.RFC3339)
}

func (d *decoder) schemaProps(value field) (any, error) {
	return d.message(value.bytes, d.types["apiextensions/v1.JSONSchemaProps"])
}

func (d *decoder) schemaList(form string, values []field) (any, error) {
	items := []any{}
	for _, value := range values {
		if err := d.charge(listItem + len(value.bytes)); err != nil {
			return nil, err
		}
		if form == "orstrings" {
			items = append(items, string(value.bytes))
			continue
		}
		schema, err := d.schemaProps(value)
		if err != nil {
			return nil, err
		}
		items = append(items, schema)
	}
	return items, nil
}
