package change

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command"
	"github.com/anykind/anykind/cli/resource"
	"github.com/anykind/anykind/dynamic"
)

// writeFlags are the shared flags of the writing commands. dryRun and validation are set by complete.
type writeFlags struct {
	dryRunFlag, validateFlag, fieldManager string
	dryRun                                 command.DryRun
	validation                             string
}

func (w *writeFlags) addDryRun(fs *pflag.FlagSet) {
	command.AddDryRunFlag(fs, &w.dryRunFlag)
}

func (w *writeFlags) addFieldManager(fs *pflag.FlagSet) {
	fs.StringVar(&w.fieldManager, "field-manager", "", "Name of the manager used to track field ownership (default anyctl).")
}

func (w *writeFlags) addValidate(fs *pflag.FlagSet) {
	fs.StringVar(&w.validateFlag, "validate", "strict", `Must be one of: strict (or true), warn, ignore (or false). The server rejects unknown and duplicate fields, warns about them, or drops them.`)
	fs.Lookup("validate").NoOptDefVal = "strict"
}

// addFiles defines -f and -R, and connects the finder.
func addFiles(fs *pflag.FlagSet, s *command.State, finder *resource.Finder, contents string) {
	finder.Connection = s.Connection
	finder.Files.In = s.In
	finder.Files.AddFlags(fs, contents)
}

// complete parses the flags. warn prints a deprecation.
func (w *writeFlags) complete(warn func(format string, args ...any)) error {
	if w.dryRunFlag != "" {
		mode, err := command.ParseDryRun(w.dryRunFlag, warn)
		if err != nil {
			return err
		}
		w.dryRun = mode
	}
	if w.validateFlag != "" {
		validation, err := parseValidation(w.validateFlag)
		if err != nil {
			return err
		}
		w.validation = validation
	}
	return nil
}

func parseValidation(text string) (string, error) {
	switch text {
	case "strict":
		return metav1.FieldValidationStrict, nil
	case "warn":
		return metav1.FieldValidationWarn, nil
	case "ignore":
		return metav1.FieldValidationIgnore, nil
	}
	isStrict, err := strconv.ParseBool(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("invalid - validate option %q; must be one of: strict (or true), warn, ignore (or false)", text)
	case isStrict:
		return metav1.FieldValidationStrict, nil
	default:
		return metav1.FieldValidationIgnore, nil
	}
}

// defaults returns the flags as defaults of a handle.
func (w *writeFlags) defaults() *dynamic.Defaults {
	return &dynamic.Defaults{FieldManager: w.fieldManager, FieldValidation: w.validation, DryRun: w.dryRun == command.DryRunServer}
}

// checkAll rejects --all together with a selector.
func checkAll(all bool, labelSelector, fieldSelector string) error {
	switch {
	case all && labelSelector != "":
		return errors.New("cannot set --all and --selector at the same time")
	case all && fieldSelector != "":
		return errors.New("cannot set --all and --field-selector at the same time")
	}
	return nil
}
