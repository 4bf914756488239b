package kubeconfig

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// revealedJSON encodes a value for a kubeconfig file: as encoding/json does, but with the secrets.
func revealedJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	err := writeRevealed(&out, reflect.ValueOf(value))
	return out.Bytes(), err
}

func writeRevealed(out *bytes.Buffer, value reflect.Value) error {
	switch secret := value.Interface().(type) {
	case Secret:
		return writePlain(out, secret.Reveal())
	case SecretData:
		return writePlain(out, []byte(secret.Reveal()))
	case []byte, json.RawMessage:
		return writePlain(out, secret)
	}
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return writePlain(out, nil)
		}
		return writeRevealed(out, value.Elem())
	case reflect.Struct:
		return writeRevealedFields(out, value)
	case reflect.Slice:
		return writeRevealedList(out, value)
	case reflect.Map:
		return writeRevealedMap(out, value)
	default:
		return writePlain(out, value.Interface())
	}
}

func writePlain(out *bytes.Buffer, value any) error {
	encoded, err := json.Marshal(value)
	out.Write(encoded)
	return err
}

func writeRevealedFields(out *bytes.Buffer, value reflect.Value) error {
	out.WriteByte('{')
	first := true
	for field, value := range value.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		if name == "-" || options == "omitempty" && isEmpty(value) {
			continue
		}
		if err := writeRevealedMember(out, &first, name, value); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeRevealedMap(out *bytes.Buffer, value reflect.Value) error {
	out.WriteByte('{')
	first := true
	members := map[string]reflect.Value{}
	for name, member := range value.Seq2() {
		members[name.String()] = member
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if err := writeRevealedMember(out, &first, name, members[name]); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeRevealedMember(out *bytes.Buffer, first *bool, name string, value reflect.Value) error {
	if !*first {
		out.WriteByte(',')
	}
	*first = false
	if err := writePlain(out, name); err != nil {
		return err
	}
	out.WriteByte(':')
	return writeRevealed(out, value)
}

func writeRevealedList(out *bytes.Buffer, value reflect.Value) error {
	if value.IsNil() {
		return writePlain(out, nil)
	}
	out.WriteByte('[')
	for i := range value.Len() {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeRevealed(out, value.Index(i)); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}
