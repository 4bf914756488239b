package kuberc

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// The policies for credential plugins. "" means allowAll.
const (
	allowAll  = "AllowAll"
	denyAll   = "DenyAll"
	allowlist = "Allowlist"
)

// validate rejects preferences that cannot be applied. A nil Preference is valid.
func (p *Preference) validate() error {
	if p == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, alias := range p.Aliases {
		if strings.Trim(alias.Name, letters) != "" || alias.Name == "" {
			return errors.New("invalid alias name, can only include alphabetical characters")
		}
		if err := validateOptions(alias.Options); err != nil {
			return err
		}
		if seen[alias.Name] {
			return fmt.Errorf("duplicate alias name %s", alias.Name)
		}
		seen[alias.Name] = true
	}
	for _, defaults := range p.Defaults {
		if err := validateOptions(defaults.Options); err != nil {
			return err
		}
	}
	return p.validatePolicy()
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func validateOptions(options []Option) error {
	for _, option := range options {
		if strings.HasPrefix(option.Name, "-") {
			return fmt.Errorf("flag name %s should be in long form without dashes", option.Name)
		}
	}
	return nil
}

func (p *Preference) validatePolicy() error {
	list := p.CredentialPluginAllowlist
	switch p.CredentialPluginPolicy {
	case "", allowAll, denyAll:
		if list != nil {
			return fmt.Errorf("misconfigured credential plugin allowlist: plugin policy is %q but allowlist is non-nil", p.CredentialPluginPolicy)
		}
		return nil
	case allowlist:
	default:
		return fmt.Errorf("unknown plugin policy: %q", p.CredentialPluginPolicy)
	}
	switch {
	case list == nil:
		return fmt.Errorf("credential plugin policy set to %q, but allowlist is unspecified", allowlist)
	case len(list) == 0:
		return fmt.Errorf("credential plugin policy set to %q, but allowlist is empty; use %q policy instead", allowlist, denyAll)
	}
	for i, entry := range list {
		command := entry.command()
		if command == "" {
			return fmt.Errorf("misconfigured credential plugin allowlist: empty allowlist entry #%d", i+1)
		}
		if clean := filepath.Clean(command); clean != command {
			return fmt.Errorf("non-normalized file path: %q vs %q", command, clean)
		}
	}
	return nil
}

func (a *Allowance) command() string {
	if a.Command != "" {
		return a.Command
	}
	return a.Name
}

// checkPlugin returns an error for a credential plugin that the policy forbids.
func (p *Preference) checkPlugin(command string) error {
	switch p.CredentialPluginPolicy {
	case denyAll:
		return fmt.Errorf("credential plugin %q is not allowed: the policy in kuberc is %q", command, denyAll)
	case allowlist:
	default:
		return nil
	}
	path, err := exec.LookPath(command)
	if err != nil {
		return fmt.Errorf("credential plugin %q: %w", command, err)
	}
	for _, entry := range p.CredentialPluginAllowlist {
		if allowed, err := exec.LookPath(entry.command()); err == nil && allowed == path {
			return nil
		}
	}
	return fmt.Errorf("credential plugin %q is not allowed: it is not in the allowlist of kuberc", command)
}
