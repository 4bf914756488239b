package kuberc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anykind/anykind/cli/internal/command"
)

// Preferences are the preferences for a command line.
type Preferences struct {
	state      *command.State
	preference *Preference // nil without preferences
	// alias is the command of the command line's alias, or nil.
	alias *cobra.Command
	// err is reported when the program runs.
	err error
}

// Load reads the preferences for the command line of s. It must be called before the commands are built, because an alias on the command line
// names further commands.
func Load(s *command.State) *Preferences {
	p := &Preferences{state: s}
	if len(s.Args) == 0 || strings.EqualFold(os.Getenv("KUBECTL_KUBERC"), "false") {
		return p
	}
	flag, err := flagValue(s.Args)
	if err == nil {
		p.preference, err = load(flag, s.Errorf)
	}
	if err != nil {
		p.err = fmt.Errorf("error occurred while applying preferences %w", err)
		return p
	}
	if p.preference == nil {
		return p
	}
	if p.preference.CredentialPluginPolicy != "" {
		s.Connection.CheckExec = p.preference.checkPlugin
	}
	for _, alias := range p.preference.Aliases {
		if s.IsNamed(alias.Name) {
			s.Aliased = append(s.Aliased, strings.Fields(alias.Command)...)
		}
	}
	return p
}

// NameCommands reports whether there are preferences: they name commands, besides that of the command line.
func (p *Preferences) NameCommands() bool { return p != nil && p.preference != nil }

// AddFlag defines --kuberc. The value is read by Load.
func AddFlag(fs *pflag.FlagSet) {
	fs.String("kuberc", "", "Path to the kuberc file to use for preferences. This can be disabled by exporting KUBECTL_KUBERC=false feature gate or turning off the feature KUBERC=off.")
}

// flagValue returns the value of --kuberc in a command line, before any parsing.
func flagValue(args []string) (string, error) {
	for i, arg := range args {
		value, hasValue := strings.CutPrefix(arg, "--kuberc=")
		switch {
		case arg == "--":
			return "", nil
		case arg == "--kuberc" && i+1 < len(args):
			return args[i+1], nil
		case arg == "--kuberc" || hasValue && value == "":
			return "", errors.New("kuberc file is not found")
		case hasValue:
			return value, nil
		}
	}
	return "", nil
}

// Apply changes the state's command line and the defaults of flags.
func (p *Preferences) Apply(root *cobra.Command) error {
	if p.err != nil || p.preference == nil {
		return p.err
	}
	err := p.applyAlias(root)
	if err == nil {
		err = p.applyDefaults(root)
	}
	if err != nil {
		return fmt.Errorf("error occurred while applying preferences %w", err)
	}
	return nil
}

// applyAlias adds a command for an alias on the command line, and changes the arguments.
func (p *Preferences) applyAlias(root *cobra.Command) error {
	args := p.state.Args
	if _, found := find(root, args); found {
		return nil
	}
	at := slices.IndexFunc(args, func(arg string) bool {
		return !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, cobra.ShellCompRequestCmd)
	})
	if at < 0 {
		return nil
	}
	i := slices.IndexFunc(p.preference.Aliases, func(alias Alias) bool { return alias.Name == args[at] })
	if i < 0 {
		return nil
	}
	alias := p.preference.Aliases[i]
	if _, found := find(root, []string{alias.Name}); found {
		p.state.Errorf("Warning: Setting alias %q to a built-in command is not supported", alias.Name)
		return nil
	}
	words := strings.Fields(alias.Command)
	existing, found := find(root, words)
	if !found {
		return fmt.Errorf("command %q not found to set alias %q: %v", alias.Command, alias.Name, words)
	}
	renamed := *existing
	renamed.Use = alias.Name
	renamed.Aliases = nil
	root.AddCommand(&renamed)
	p.alias = &renamed
	err := setDefaults(p.alias, alias.Options, args, func(option Option, err error) error {
		if err == nil {
			return fmt.Errorf("invalid alias flag %s in alias %s", option.Name, alias.Name)
		}
		return fmt.Errorf("could not apply value %s to flag %s in alias %s err: %w", option.Default, option.Name, alias.Name, err)
	})
	p.state.Args = slices.Concat(args[:at+1], alias.PrependArgs, args[at+1:], alias.AppendArgs)
	return err
}

// applyDefaults sets the defaults for the command of the command line.
func (p *Preferences) applyDefaults(root *cobra.Command) error {
	args := p.state.Args
	cmd, found := find(root, args)
	if !found {
		return nil
	}
	for _, defaults := range p.preference.Defaults {
		words := strings.Fields(defaults.Command)
		named, found := find(root, words)
		if !found {
			p.state.Errorf("Warning: command %q not found to set kuberc override", defaults.Command)
			continue
		}
		if named != cmd {
			continue
		}
		if cmd == p.alias {
			return fmt.Errorf("alias %s can not be overridden", cmd.Name())
		}
		err := setDefaults(cmd, defaults.Options, args, func(option Option, err error) error {
			if err == nil {
				return fmt.Errorf("invalid flag %s for command %s", option.Name, defaults.Command)
			}
			return fmt.Errorf("could not apply override value %s to flag %s in command %s err: %w", option.Default, option.Name, defaults.Command, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// setDefaults sets flags that are not in args. failed returns the error for an option: err is nil for a missing flag.
func setDefaults(cmd *cobra.Command, options []Option, args []string, failed func(option Option, err error) error) error {
	_ = cmd.InheritedFlags() // adds the persistent flags of the root
	for _, option := range options {
		flag := cmd.Flag(option.Name)
		if flag == nil {
			return failed(option, nil)
		}
		if isSet(flag, args) {
			continue
		}
		if err := cmd.Flags().Set(option.Name, option.Default); err != nil {
			return failed(option, err)
		}
	}
	return nil
}

// isSet reports whether args have a flag, also among combined shorthands such as -it.
func isSet(flag *pflag.Flag, args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		if arg == "--"+flag.Name || strings.HasPrefix(arg, "--"+flag.Name+"=") {
			return true
		}
		short := flag.Shorthand
		if short == "" || !strings.HasPrefix(arg, "-") {
			return false
		}
		return strings.HasPrefix(arg, "-"+short) || len(arg) > 1 && strings.Trim(arg[1:], letters) == "" && strings.Contains(arg[1:], short)
	})
}

// find returns the command of a command line. found is false for the root.
func find(root *cobra.Command, args []string) (cmd *cobra.Command, found bool) {
	cmd, _, err := root.Find(args)
	return cmd, err == nil && cmd != root
}
