package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/transport/kubeconfig"
	"github.com/anykind/anykind/transport/kubeconfig/edit"
)

// credentialsOptions are the flags of set-credentials except the connection flags.
type credentialsOptions struct {
	embed                            bool
	authProvider                     string
	authProviderArgs                 []string
	command, apiVersion, interactive string
	provideClusterInfo               bool
	args, env                        []string
	setConfig, setEnv                map[string]string
	removedConfig, removedEnv        []string
}

func newSetCredentials(s *command.State) *cobra.Command {
	o := &credentialsOptions{}
	cmd := &cobra.Command{
		Use:   "set-credentials NAME [--client-certificate=path/to/certfile] [--client-key=path/to/keyfile] [--token=bearer_token] [--username=basic_user] [--password=basic_password] [--exec-command=exec_command]",
		Short: "Set a user entry in kubeconfig",
		Long: "Set a user entry in kubeconfig. An existing entry keeps the fields that no flag names, but a token and a user with a " +
			"password replace each other.",
		ValidArgsFunction: s.Connection.CompleteUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError(cmd, "unexpected args: %v", args)
			}
			if err := o.complete(s, args[0]); err != nil {
				return err
			}
			return o.run(cmd, s, args[0])
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.embed, "embed-certs", false, "Embed client cert/key for the user entry in kubeconfig")
	fs.StringVar(&o.authProvider, "auth-provider", "", "Auth provider for the user entry in kubeconfig")
	fs.StringSliceVar(&o.authProviderArgs, "auth-provider-arg", nil, "'key=value' arguments for the auth provider; key- removes one")
	fs.StringVar(&o.command, "exec-command", "", "Command for the exec credential plugin for the user entry in kubeconfig")
	fs.StringVar(&o.apiVersion, "exec-api-version", "", "API version of the exec credential plugin for the user entry in kubeconfig")
	fs.StringVar(&o.interactive, "exec-interactive-mode", "", "InteractiveMode of the exec credentials plugin for the user entry in kubeconfig")
	fs.BoolVar(&o.provideClusterInfo, "exec-provide-cluster-info", false, "ProvideClusterInfo of the exec credentials plugin for the user entry in kubeconfig")
	fs.StringSliceVar(&o.args, "exec-arg", nil, "New arguments for the exec credential plugin command for the user entry in kubeconfig")
	fs.StringArrayVar(&o.env, "exec-env", nil, "'key=value' environment values for the exec credential plugin; key- removes one")
	return cmd
}

func (o *credentialsOptions) complete(s *command.State, name string) (err error) {
	if o.setConfig, o.removedConfig, err = parsePairs("auth-provider-arg", o.authProviderArgs); err != nil {
		return err
	}
	if o.setEnv, o.removedEnv, err = parsePairs("exec-env", o.env); err != nil {
		return err
	}
	c := s.Connection
	switch {
	case name == "":
		return errors.New("you must specify a non-empty user name")
	case c.Token != "" && (c.Username != "" || c.Password != ""):
		return errors.New("you cannot specify more than one authentication method at the same time: --token, --username/--password")
	case o.interactive != "" && !slices.Contains([]string{kubeconfig.InteractiveIfAvailable, kubeconfig.InteractiveAlways, kubeconfig.InteractiveNever}, o.interactive):
		return errors.New("invalid interactive mode type, can be only IfAvailable, Never, Always")
	case o.embed && c.ClientCertificate == "" && c.ClientKey == "":
		return errors.New("you must specify a --client-certificate or --client-key to embed")
	case !o.embed:
		return nil
	}
	for _, file := range []struct{ flag, path string }{{"client-certificate", c.ClientCertificate}, {"client-key", c.ClientKey}} {
		if file.path == "" {
			continue
		}
		if _, err := os.Stat(file.path); err != nil {
			return fmt.Errorf("could not stat %s file %s: %w", file.flag, file.path, err)
		}
	}
	return nil
}

// parsePairs parses values of a flag: key=value sets a key, key- removes it.
func parsePairs(flag string, pairs []string) (set map[string]string, removed []string, err error) {
	set = map[string]string{}
	var invalid []string
	for _, pair := range pairs {
		key, value, hasValue := strings.Cut(pair, "=")
		name, isRemoval := strings.CutSuffix(pair, "-")
		switch {
		case hasValue && key != "":
			set[key] = value
		case !hasValue && isRemoval && name != "":
			removed = append(removed, name)
		default:
			invalid = append(invalid, pair)
		}
	}
	if len(invalid) > 0 {
		return nil, nil, fmt.Errorf("invalid %s format: %s", flag, strings.Join(invalid, ", "))
	}
	return set, removed, nil
}

func (o *credentialsOptions) run(cmd *cobra.Command, s *command.State, name string) error {
	file, err := loadFile(s)
	if err != nil {
		return err
	}
	entry := file.Users[name]
	path, err := entryFile(s, entry.Origin)
	if err != nil {
		return err
	}
	if err := o.changeCertificate(cmd.Flags(), s, path, &entry); err != nil {
		return err
	}
	changeToken(cmd.Flags(), s, &entry)
	o.changeAuthProvider(cmd.Flags(), &entry)
	o.changeExec(cmd.Flags(), &entry)
	if err := putUser(cmd.Context(), path, name, entry); err != nil {
		return err
	}
	return s.Printf("User %q set.\n", name)
}

func (o *credentialsOptions) changeCertificate(flags *pflag.FlagSet, s *command.State, path string, entry *kubeconfig.User) (err error) {
	certificate := s.Connection.ClientCertificate
	key := s.Connection.ClientKey
	switch {
	case !flags.Changed("client-certificate"):
	case o.embed:
		entry.ClientCertificate = ""
		entry.ClientCertificateData, err = os.ReadFile(certificate)
	default:
		if entry.ClientCertificate, err = inFolder(path, certificate); certificate != "" {
			entry.ClientCertificateData = nil
		}
	}
	if err != nil || !flags.Changed("client-key") {
		return err
	}
	if !o.embed {
		if entry.ClientKey, err = inFolder(path, key); key != "" {
			entry.ClientKeyData = kubeconfig.SecretData{}
		}
		return err
	}
	data, err := os.ReadFile(key)
	entry.ClientKey = ""
	entry.ClientKeyData = kubeconfig.NewSecretData(data)
	return err
}

func changeToken(flags *pflag.FlagSet, s *command.State, entry *kubeconfig.User) {
	c := s.Connection
	if flags.Changed("token") {
		entry.Token = kubeconfig.NewSecret(c.Token)
	}
	if flags.Changed("username") {
		entry.Username = c.Username
	}
	if flags.Changed("password") {
		entry.Password = kubeconfig.NewSecret(c.Password)
	}
	switch {
	case c.Token != "":
		entry.Username = ""
		entry.Password = kubeconfig.Secret{}
	case c.Username != "" || c.Password != "":
		entry.Token = kubeconfig.Secret{}
	}
}

func (o *credentialsOptions) changeAuthProvider(flags *pflag.FlagSet, entry *kubeconfig.User) {
	if flags.Changed("auth-provider") && (entry.AuthProvider == nil || entry.AuthProvider.Name != o.authProvider) {
		entry.AuthProvider = &kubeconfig.AuthProvider{Name: o.authProvider}
	}
	if entry.AuthProvider == nil {
		return
	}
	provider := *entry.AuthProvider
	provider.Config = maps.Clone(provider.Config)
	if provider.Config == nil {
		provider.Config = map[string]kubeconfig.Secret{}
	}
	for _, key := range o.removedConfig {
		delete(provider.Config, key)
	}
	for key, value := range o.setConfig {
		provider.Config[key] = kubeconfig.NewSecret(value)
	}
	entry.AuthProvider = &provider
}

// changeExec changes the exec plugin. Without a plugin and --exec-command it changes nothing, as in kubectl.
func (o *credentialsOptions) changeExec(flags *pflag.FlagSet, entry *kubeconfig.User) {
	exec := kubeconfig.Exec{}
	if entry.Exec != nil {
		exec = *entry.Exec
	}
	if flags.Changed("exec-command") {
		exec.Command = o.command
		exec.Args = nil
	} else if entry.Exec == nil {
		return
	}
	if flags.Changed("exec-api-version") {
		exec.APIVersion = o.apiVersion
	}
	if len(o.args) > 0 {
		exec.Args = o.args
	}
	if flags.Changed("exec-interactive-mode") {
		exec.InteractiveMode = o.interactive
	}
	if flags.Changed("exec-provide-cluster-info") {
		exec.ProvideClusterInfo = o.provideClusterInfo
	}
	exec.Env = o.changedEnv(exec.Env)
	entry.Exec = &exec
}

func (o *credentialsOptions) changedEnv(before []kubeconfig.EnvVar) []kubeconfig.EnvVar {
	var env []kubeconfig.EnvVar
	set := maps.Clone(o.setEnv)
	for _, variable := range before {
		if slices.Contains(o.removedEnv, variable.Name) {
			continue
		}
		if value, isSet := set[variable.Name]; isSet {
			variable.Value = kubeconfig.NewSecret(value)
			delete(set, variable.Name)
		}
		env = append(env, variable)
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, kubeconfig.EnvVar{Name: name, Value: kubeconfig.NewSecret(set[name])})
	}
	return env
}

func putUser(ctx context.Context, path, name string, entry kubeconfig.User) error {
	return edit.File(ctx, path, func(document *edit.Document) error {
		return document.Put(&kubeconfig.File{Users: map[string]kubeconfig.User{name: entry}})
	})
}
