package config

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// property is a field of a kubeconfig: current-context, LIST, LIST.NAME or LIST.NAME.FIELD. Names may contain dots: a name ends
// before the first part equal to a field name of the entries.
type property struct {
	text   string
	list   string // clusters, users or contexts; "" for current-context
	name   string // unused if text is the list
	fields []string
}

func parseProperty(text string) (*property, error) {
	if text == "" {
		return nil, errors.New("you must specify a property")
	}
	list, rest, hasName := strings.Cut(text, ".")
	entries := map[string]reflect.Type{
		"clusters": reflect.TypeFor[kubeconfig.Cluster](), "users": reflect.TypeFor[kubeconfig.User](), "contexts": reflect.TypeFor[kubeconfig.Context](),
	}
	switch {
	case text == "current-context":
		return &property{text: text}, nil
	case entries[list] == nil:
		return nil, fmt.Errorf("unable to parse %s: it begins with none of current-context, clusters, contexts, users", text)
	case !hasName:
		return &property{text: text, list: list}, nil
	}
	parts := strings.Split(rest, ".")
	end := len(parts)
	for i := 1; i < len(parts); i++ {
		if slices.Contains(fieldNames(entries[list]), parts[i]) {
			end = i
			break
		}
	}
	return &property{text: text, list: list, name: strings.Join(parts[:end], "."), fields: parts[end:]}, nil
}

// fieldNames returns the names of a struct's fields in kubeconfig files.
func fieldNames(entry reflect.Type) []string {
	var names []string
	for i := range entry.NumField() {
		if name := fieldName(entry.Field(i)); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func fieldName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func newSet(s *command.State) *cobra.Command {
	var isRaw bool
	cmd := &cobra.Command{
		Use:   "set PROPERTY_NAME PROPERTY_VALUE",
		Short: "Set an individual value in a kubeconfig file",
		Long: "Set an individual value in a kubeconfig file. PROPERTY_NAME is current-context, or a field of an entry: " +
			"clusters.NAME.server, contexts.NAME.namespace. Binary fields are given in base64.",
		Example: "  anyctl config set clusters.my-cluster.server https://1.2.3.4\n  anyctl config set contexts.my-context.cluster my-cluster",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) != 2:
				return command.UsageError(cmd, "Unexpected args: %v", args)
			case args[1] == "":
				return errors.New("you cannot use set to unset a property")
			}
			p, err := parseProperty(args[0])
			if err != nil {
				return err
			}
			if err := p.set(cmd.Context(), s, args[1], isRaw); err != nil {
				return err
			}
			return s.Printf("Property %q set.\n", p.text)
		},
	}
	cmd.Flags().BoolVar(&isRaw, "set-raw-bytes", false, "When writing a []byte PROPERTY_VALUE, write the given string directly without base64 decoding.")
	return cmd
}

func newUnset(s *command.State) *cobra.Command {
	return &cobra.Command{
		Use:     "unset PROPERTY_NAME",
		Short:   "Unset an individual value in a kubeconfig file",
		Long:    "Unset an individual value in a kubeconfig file: current-context, a field of an entry, an entry, or all entries of a list.",
		Example: "  anyctl config unset current-context\n  anyctl config unset contexts.foo.namespace",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError(cmd, "Unexpected args: %v", args)
			}
			p, err := parseProperty(args[0])
			if err != nil {
				return err
			}
			if err := p.unset(cmd.Context(), s); err != nil {
				return err
			}
			return s.Printf("Property %q unset.\n", p.text)
		},
	}
}

func (p *property) set(ctx context.Context, s *command.State, text string, isRaw bool) error {
	if p.list == "" {
		return setCurrentContext(ctx, s, text)
	}
	if len(p.fields) == 0 {
		return fmt.Errorf("can't set %s to a value: name one of the fields of an entry, as in %s.NAME.FIELD", p.text, p.list)
	}
	return p.change(ctx, s, func(entry reflect.Value) error {
		field, err := fieldOf(entry, p.fields)
		if err != nil {
			return fmt.Errorf("unable to parse %s: %w", p.text, err)
		}
		return setText(field, text, isRaw)
	})
}

func (p *property) unset(ctx context.Context, s *command.State) error {
	if p.list == "" {
		return setCurrentContext(ctx, s, "")
	}
	if len(p.fields) == 0 {
		return p.deleteEntries(ctx, s)
	}
	file, err := loadFile(s)
	if err != nil {
		return err
	}
	if _, exists := p.origins(file)[p.name]; !exists {
		return fmt.Errorf("current map key `%s` is invalid", p.name)
	}
	return p.change(ctx, s, func(entry reflect.Value) error {
		field, err := fieldOf(entry, p.fields)
		if err != nil {
			return fmt.Errorf("unable to parse %s: %w", p.text, err)
		}
		field.SetZero()
		return nil
	})
}

// change calls change with the entry as a settable value, and writes the entry to its file.
func (p *property) change(ctx context.Context, s *command.State, change func(entry reflect.Value) error) error {
	file, err := loadFile(s)
	if err != nil {
		return err
	}
	switch p.list {
	case "clusters":
		return changeEntry(ctx, s, file.Clusters[p.name], file.Clusters[p.name].Origin, p.name, change, putCluster)
	case "users":
		return changeEntry(ctx, s, file.Users[p.name], file.Users[p.name].Origin, p.name, change, putUser)
	}
	return changeEntry(ctx, s, file.Contexts[p.name], file.Contexts[p.name].Origin, p.name, change, putContext)
}

func changeEntry[T any](ctx context.Context, s *command.State, entry T, origin, name string,
	change func(reflect.Value) error, put func(ctx context.Context, path, name string, entry T) error,
) error {
	if err := change(reflect.ValueOf(&entry).Elem()); err != nil {
		return err
	}
	path, err := entryFile(s, origin)
	if err != nil {
		return err
	}
	return put(ctx, path, name, entry)
}

// deleteEntries deletes the entry or, if the property is a list, all entries. A missing entry is no error, as in kubectl.
func (p *property) deleteEntries(ctx context.Context, s *command.State) error {
	file, err := loadFile(s)
	if err != nil {
		return err
	}
	remove := map[string]func(*edit.Document, string) error{
		"clusters": (*edit.Document).DeleteCluster, "users": (*edit.Document).DeleteUser, "contexts": (*edit.Document).DeleteContext,
	}[p.list]
	origins := p.origins(file)
	for _, name := range slices.Sorted(maps.Keys(origins)) {
		if p.text != p.list && p.name != name {
			continue
		}
		if err := edit.File(ctx, origins[name], func(document *edit.Document) error { return remove(document, name) }); err != nil {
			return err
		}
	}
	return nil
}

// origins maps the names of the list's entries to their files.
func (p *property) origins(file *kubeconfig.File) map[string]string {
	origins := map[string]string{}
	switch p.list {
	case "clusters":
		for name, entry := range file.Clusters {
			origins[name] = entry.Origin
		}
	case "users":
		for name, entry := range file.Users {
			origins[name] = entry.Origin
		}
	case "contexts":
		for name, entry := range file.Contexts {
			origins[name] = entry.Origin
		}
	}
	return origins
}

// fieldOf returns the field of a struct at a path. Structs behind pointers are copied first, or created for nil.
func fieldOf(value reflect.Value, path []string) (reflect.Value, error) {
	for i, name := range path {
		if value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct {
			copied := reflect.New(value.Type().Elem())
			if !value.IsNil() {
				copied.Elem().Set(value.Elem())
			}
			value.Set(copied)
			value = copied.Elem()
		}
		if value.Kind() != reflect.Struct || value.NumField() == 0 || !slices.Contains(fieldNames(value.Type()), name) {
			return value, fmt.Errorf("there is no field %s", strings.Join(path[:i+1], "."))
		}
		for field := range value.NumField() {
			if fieldName(value.Type().Field(field)) == name {
				value = value.Field(field)
				break
			}
		}
	}
	return value, nil
}

// setText parses text for the type of field and sets it. Without isRaw, text is base64 for fields of bytes.
func setText(field reflect.Value, text string, isRaw bool) error {
	switch field.Interface().(type) {
	case string:
		field.SetString(text)
	case bool:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return err
		}
		field.SetBool(value)
	case kubeconfig.Secret:
		field.Set(reflect.ValueOf(kubeconfig.NewSecret(text)))
	case []byte, kubeconfig.SecretData:
		data := []byte(text)
		if !isRaw {
			var err error
			if data, err = base64.StdEncoding.DecodeString(text); err != nil {
				return fmt.Errorf("error decoding input value: %w", err)
			}
		}
		if field.Kind() == reflect.Slice {
			field.SetBytes(data)
		} else {
			field.Set(reflect.ValueOf(kubeconfig.NewSecretData(data)))
		}
	default:
		return errors.New("config set: the field is a list or an object, only texts, booleans and binary data can be set (edit the file)")
	}
	return nil
}
