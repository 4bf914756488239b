package config

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/internal/nested"
	"github.com/anykind/anykind/cli/print"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/unstructured"
)

const (
	omittedData = "DATA+OMITTED"
	redacted    = "REDACTED"
)

// configView is the command config view.
type configView struct {
	raw, flatten, minify, merge bool
}

func newConfigView(s *command.State) *cobra.Command {
	output := print.NewFlags()
	output.Output = "yaml"
	v := &configView{}
	cmd := &cobra.Command{
		Use: "view", Short: "Display merged kubeconfig settings or a specified kubeconfig file",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.UsageError(cmd, "unexpected arguments: %v", args)
			}
			return v.print(s, output)
		},
	}
	output.AddObjectFlags(cmd.Flags())
	cmd.Flags().BoolVar(&v.raw, "raw", false, "Display raw byte data and sensitive data")
	cmd.Flags().BoolVar(&v.flatten, "flatten", false, "Flatten the resulting kubeconfig file into self-contained output (useful for creating portable kubeconfig files)")
	cmd.Flags().BoolVar(&v.minify, "minify", false, "Remove all information not used by current-context from the output")
	cmd.Flags().BoolVar(&v.merge, "merge", true, "Merge the full hierarchy of kubeconfig files")
	return cmd
}

func (v *configView) print(s *command.State, output *print.Flags) error {
	file, err := v.load(s)
	if err != nil {
		return err
	}
	if v.minify {
		if file, err = minified(file, s.Connection.Context); err != nil {
			return err
		}
	}
	object, err := v.object(file)
	if err != nil {
		return err
	}
	printer, err := output.Printer(s.Out)
	if err != nil {
		return err
	}
	return printer.Object(&unstructured.Object{Object: object})
}

// load returns the merged kubeconfig, or with --merge=false the file of --kubeconfig, which must exist.
func (v *configView) load(s *command.State) (*kubeconfig.File, error) {
	switch {
	case v.merge:
		return loadFile(s)
	case s.Connection.Kubeconfig == "":
		return nil, errors.New("if merge==false a precise file must be specified")
	}
	return kubeconfig.Read(s.Connection.Kubeconfig)
}

// minified returns file reduced to a context, its cluster and its user. name "" is the current context.
func minified(file *kubeconfig.File, name string) (*kubeconfig.File, error) {
	if name == "" {
		name = file.CurrentContext
	}
	kubeContext, ok := file.Contexts[name]
	if !ok {
		return nil, fmt.Errorf("cannot locate context %s", name)
	}
	small := &kubeconfig.File{CurrentContext: name, Contexts: map[string]kubeconfig.Context{name: kubeContext}}
	if cluster, ok := file.Clusters[kubeContext.Cluster]; ok {
		small.Clusters = map[string]kubeconfig.Cluster{kubeContext.Cluster: cluster}
	}
	if user, ok := file.Users[kubeContext.User]; ok {
		small.Users = map[string]kubeconfig.User{kubeContext.User: user}
	}
	return small, nil
}

func (v *configView) object(file *kubeconfig.File) (map[string]any, error) {
	clusters, err := entries(file.Clusters, "cluster", v.cluster)
	if err != nil {
		return nil, err
	}
	contexts, err := entries(file.Contexts, "context", v.context)
	if err != nil {
		return nil, err
	}
	users, err := entries(file.Users, "user", v.user)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": file.CurrentContext,
		"clusters": clusters, "contexts": contexts, "users": users,
	}, nil
}

// entries returns the entries of a section, sorted by name. It returns nil for an empty section: kubectl writes null.
func entries[T any](section map[string]T, key string, convert func(T) (map[string]any, error)) (any, error) {
	if len(section) == 0 {
		return nil, nil //nolint:nilnil // null is the value
	}
	var list []any
	for _, name := range slices.Sorted(maps.Keys(section)) {
		fields, err := convert(section[name])
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", key, name, err)
		}
		list = append(list, map[string]any{"name": name, key: fields})
	}
	return list, nil
}

// These types lack the methods for hiding values. The fields of type Secret remain hidden.
type (
	plainCluster kubeconfig.Cluster
	plainContext kubeconfig.Context
	plainUser    kubeconfig.User
	plainExec    kubeconfig.Exec
)

func (v *configView) cluster(c kubeconfig.Cluster) (map[string]any, error) {
	plain := plainCluster(c)
	plain.Extensions = nil
	fields, err := toMap(plain)
	if err != nil {
		return nil, err
	}
	if proxy := c.ProxyURL.Reveal(); proxy != "" { // with its password, as in kubectl
		fields["proxy-url"] = proxy
	}
	v.data(fields, "certificate-authority-data", c.CertificateAuthorityData)
	if err := v.inline(fields, "certificate-authority"); err != nil {
		return nil, err
	}
	return fields, addExtensions(fields, c.Extensions)
}

func (v *configView) context(c kubeconfig.Context) (map[string]any, error) {
	plain := plainContext(c)
	plain.Extensions = nil
	fields, err := toMap(plain)
	if err != nil {
		return nil, err
	}
	return fields, addExtensions(fields, c.Extensions)
}

func (v *configView) user(u kubeconfig.User) (map[string]any, error) {
	plain := plainUser(u)
	plain.Extensions = nil
	plain.Exec = nil
	plain.AuthProvider = nil
	fields, err := toMap(plain)
	if err != nil {
		return nil, err
	}
	v.data(fields, "client-certificate-data", u.ClientCertificateData)
	v.data(fields, "client-key-data", []byte(u.ClientKeyData.Reveal()))
	v.secret(fields, "token", u.Token)
	v.secret(fields, "password", u.Password)
	for _, name := range []string{"client-certificate", "client-key"} {
		if err := v.inline(fields, name); err != nil {
			return nil, err
		}
	}
	if u.Exec != nil {
		if fields["exec"], err = v.exec(u.Exec); err != nil {
			return nil, err
		}
	}
	if u.AuthProvider != nil {
		config := map[string]any{}
		for name, value := range u.AuthProvider.Config {
			v.secret(config, name, value)
		}
		fields["auth-provider"] = map[string]any{"name": u.AuthProvider.Name, "config": config}
	}
	return fields, addExtensions(fields, u.Extensions)
}

func (v *configView) exec(exec *kubeconfig.Exec) (map[string]any, error) {
	plain := plainExec(*exec)
	plain.Env = nil
	fields, err := toMap(plain)
	if err != nil {
		return nil, err
	}
	var env []any
	for _, variable := range exec.Env {
		entry := map[string]any{"name": variable.Name}
		v.secret(entry, "value", variable.Value)
		env = append(env, entry)
	}
	fields["env"] = nil
	if env != nil {
		fields["env"] = env
	}
	fields["provideClusterInfo"] = exec.ProvideClusterInfo
	return fields, nil
}

// toMap converts a struct to a map by its json tags, without secrets and empty strings.
func toMap(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	for name, field := range fields {
		if field == "" || field == redacted {
			delete(fields, name)
		}
	}
	return fields, nil
}

func (v *configView) data(fields map[string]any, name string, data []byte) {
	switch {
	case len(data) == 0:
		delete(fields, name)
	case v.raw || v.flatten:
		fields[name] = base64.StdEncoding.EncodeToString(data)
	default:
		fields[name] = omittedData
	}
}

func (v *configView) secret(fields map[string]any, name string, secret kubeconfig.Secret) {
	switch {
	case secret.IsZero():
		delete(fields, name)
	case v.raw || v.flatten:
		fields[name] = secret.Reveal()
	default:
		fields[name] = redacted
	}
}

// inline replaces a file name by the file's content if flatten is set.
func (v *configView) inline(fields map[string]any, name string) error {
	path := nested.String(fields, name)
	if !v.flatten || path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	delete(fields, name)
	v.data(fields, name+"-data", data)
	return nil
}

func addExtensions(fields map[string]any, extensions kubeconfig.Extensions) error {
	var list []any
	for _, name := range slices.Sorted(maps.Keys(extensions)) {
		var value any
		if err := json.Unmarshal(extensions[name], &value); err != nil {
			return err
		}
		list = append(list, map[string]any{"name": name, "extension": value})
	}
	if list != nil {
		fields["extensions"] = list
	}
	return nil
}
