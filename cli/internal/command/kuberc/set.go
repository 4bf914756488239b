package kuberc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/cli/internal/command"
)

// The sections of kuberc set.
const (
	defaultsSection = "defaults"
	aliasesSection  = "aliases"
	pluginSection   = "credentialplugin"
)

// setOptions are the options of kuberc set.
type setOptions struct {
	*command.State

	section, command, name, policy             string
	options, prependArgs, appendArgs, allowing []string
	overwrite                                  bool
}

func setCommand(s *command.State) *cobra.Command {
	o := &setOptions{State: s}
	cmd := &cobra.Command{
		Use:   "set --section (defaults|aliases) --command COMMAND",
		Short: "Set values in the kuberc configuration",
		Example: "  anyctl kuberc set --section defaults --command get --option output=wide\n" +
			"  anyctl kuberc set --section aliases --name getn --command get --prependarg nodes --option output=wide",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, _, err := commandPath(cmd)
			if err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(file)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.section, "section", "", "Section to modify: 'defaults', 'aliases', or 'credentialplugin'")
	_ = cmd.MarkFlagRequired("section") // the flag exists
	fs.StringVar(&o.command, "command", "", "Command to configure (e.g., 'get', 'create', 'set env')")
	fs.StringVar(&o.name, "name", "", "Alias name (required for --section=aliases)")
	fs.StringVar(&o.policy, "policy", "", "Plugin policy to use for exec credential plugins, must be one of 'AllowAll', 'DenyAll' or 'Allowlist'")
	fs.StringArrayVar(&o.options, "option", nil, "Flag option in the form flag=value (can be specified multiple times)")
	fs.StringArrayVar(&o.prependArgs, "prependarg", nil, "Argument to prepend to the command (can be specified multiple times, for aliases only)")
	fs.StringArrayVar(&o.appendArgs, "appendarg", nil, "Argument to append to the command (can be specified multiple times, for aliases only)")
	fs.StringArrayVar(&o.allowing, "allowlist-entry", nil, "Allowlist entry the form field=value (can be specified multiple times)")
	fs.BoolVar(&o.overwrite, "overwrite", false, "Allow overwriting existing entries")
	return cmd
}

func (o *setOptions) validate() error {
	switch {
	case !slices.Contains([]string{defaultsSection, aliasesSection, pluginSection}, o.section):
		return fmt.Errorf("--section must be %q, %q, or %q, got: %s", defaultsSection, aliasesSection, pluginSection, o.section)
	case o.section == aliasesSection && o.name == "":
		return fmt.Errorf("--name is required when --section=%s", aliasesSection)
	case o.section == defaultsSection && o.name != "":
		return fmt.Errorf("--name should not be specified when --section=%s", defaultsSection)
	case o.section == defaultsSection && len(o.prependArgs)+len(o.appendArgs) > 0:
		return fmt.Errorf("--prependarg and --appendarg are only valid for --section=%s", aliasesSection)
	case o.section != pluginSection && o.command == "":
		return fmt.Errorf("--command is required when --section=%s or --section=%s", aliasesSection, defaultsSection)
	case o.section != pluginSection:
		return nil
	case o.policy == "":
		return fmt.Errorf("--policy is required when --section=%s", pluginSection)
	case o.policy == allowlist && len(o.allowing) == 0:
		return fmt.Errorf("--allowlist-entry is required when --section=%s and --policy=%s", pluginSection, allowlist)
	case o.policy == allowlist:
		return nil
	case o.policy != allowAll && o.policy != denyAll:
		return fmt.Errorf(" --policy must be  %q, %q, or %q, got: %s", allowAll, denyAll, allowlist, o.policy)
	case len(o.allowing) > 0:
		return fmt.Errorf("--allowlist-entry may only be used when --section=%s and --policy=%s", pluginSection, allowlist)
	}
	return nil
}

func (o *setOptions) run(file string) error {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("error reading kuberc file: %w", err)
	}
	preference := &Preference{Kind: kind, APIVersion: v1beta1}
	if len(data) > 0 {
		preference = &Preference{}
		if err := yaml.Unmarshal(data, preference); err != nil {
			return fmt.Errorf("error parsing kuberc file: %w", err)
		}
	}
	options, err := parseOptions(o.options)
	if err != nil {
		return err
	}
	switch o.section {
	case defaultsSection:
		err = o.setDefaults(preference, options)
	case aliasesSection:
		err = o.setAlias(preference, options)
	default:
		err = o.setPolicy(preference)
	}
	if err != nil {
		return err
	}
	return save(o.State, file, preference)
}

func parseOptions(texts []string) ([]Option, error) {
	var options []Option
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("invalid option format %q, expected flag=value", text)
		}
		options = append(options, Option{Name: strings.TrimLeft(name, "-"), Default: value})
	}
	return options, nil
}

func (o *setOptions) setDefaults(preference *Preference, options []Option) error {
	i := slices.IndexFunc(preference.Defaults, func(d Defaults) bool { return d.Command == o.command })
	switch {
	case i < 0:
		preference.Defaults = append(preference.Defaults, Defaults{o.command, options})
	case !o.overwrite:
		return fmt.Errorf("defaults for command %q already exist, use --overwrite to replace", o.command)
	case len(options) > 0:
		preference.Defaults[i].Options = options
	}
	return nil
}

func (o *setOptions) setAlias(preference *Preference, options []Option) error {
	alias := Alias{Name: o.name, Command: o.command, PrependArgs: o.prependArgs, AppendArgs: o.appendArgs, Options: options}
	i := slices.IndexFunc(preference.Aliases, func(a Alias) bool { return a.Name == o.name })
	if i < 0 {
		preference.Aliases = append(preference.Aliases, alias)
		return nil
	}
	if !o.overwrite {
		return fmt.Errorf("alias %q already exists, use --overwrite to replace", o.name)
	}
	old := &preference.Aliases[i]
	old.Command = alias.Command
	if len(options) > 0 {
		old.Options = options
	}
	if len(alias.PrependArgs) > 0 {
		old.PrependArgs = alias.PrependArgs
	}
	if len(alias.AppendArgs) > 0 {
		old.AppendArgs = alias.AppendArgs
	}
	return nil
}

func (o *setOptions) setPolicy(preference *Preference) error {
	preference.CredentialPluginPolicy = o.policy
	preference.CredentialPluginAllowlist = nil // other policies are invalid with a list
	if o.policy != allowlist {
		return nil
	}
	var errs []error
	for _, entries := range o.allowing {
		for entry := range strings.SplitSeq(entries, ",") {
			field, value, ok := strings.Cut(entry, "=")
			switch {
			case !ok:
				errs = append(errs, fmt.Errorf("improperly formatted allowlist entry: %q", entry))
			case field == "name":
				errs = append(errs, fmt.Errorf("allowlist entry field %q is deprecated, use %q instead", "name", "command"))
			case field != "command":
				errs = append(errs, fmt.Errorf("unrecognized allowlist entry field: %q", field))
			case strings.TrimSpace(value) == "":
				errs = append(errs, fmt.Errorf("empty value in allowlist entry for field %q", field))
			default:
				preference.CredentialPluginAllowlist = append(preference.CredentialPluginAllowlist, Allowance{Command: value})
			}
		}
	}
	return errors.Join(errs...)
}

func save(s *command.State, file string, preference *Preference) error {
	folder := filepath.Dir(file)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // as kubectl
		return fmt.Errorf("failed to create directory %s: %w", folder, err)
	}
	data, err := yaml.Marshal(preference)
	if err != nil {
		return fmt.Errorf("failed to marshal preferences: %w", err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil { //nolint:gosec // as kubectl; no secrets
		return fmt.Errorf("failed to write kuberc file: %w", err)
	}
	return s.Printf("Updated %s\n", file)
}
