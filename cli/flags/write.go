package flags

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/flagset"
	"github.com/anykind/anykind/dynamic"
)

// Write has the values of the flags of commands that write. Complete sets DryRun and FieldValidation.
type Write struct {
	DryRun       DryRun
	FieldManager string
	// FieldValidation is a value of [metav1.PatchOptions].FieldValidation, or "".
	FieldValidation          string
	dryRunFlag, validateFlag string
}

// AddDryRunFlag defines --dry-run, unless fs has it. A program's own flag can set DryRun.
func (w *Write) AddDryRunFlag(fs *pflag.FlagSet) {
	if fs.Lookup("dry-run") == nil {
		addDryRunFlag(fs, &w.dryRunFlag)
	}
}

// AddFieldManagerFlag defines --field-manager, unless fs has it. Its default is FieldManager of the Connection.
func (w *Write) AddFieldManagerFlag(fs *pflag.FlagSet) {
	flagset.Define(fs, func(fs *pflag.FlagSet) {
		fs.StringVar(&w.FieldManager, "field-manager", w.FieldManager, "Name of the manager used to track field ownership.")
	})
}

// AddValidateFlag defines --validate, unless fs has it. A program's own flag can set FieldValidation.
func (w *Write) AddValidateFlag(fs *pflag.FlagSet) {
	if fs.Lookup("validate") != nil {
		return
	}
	fs.StringVar(&w.validateFlag, "validate", "strict", `Must be one of: strict (or true), warn, ignore (or false). The server rejects unknown and duplicate fields, warns about them, or drops them.`)
	fs.Lookup("validate").NoOptDefVal = "strict"
}

// Complete parses the values. warn prints a deprecation.
func (w *Write) Complete(warn func(format string, args ...any)) error {
	if w.dryRunFlag != "" {
		mode, err := parseDryRun(w.dryRunFlag, warn)
		if err != nil {
			return err
		}
		w.DryRun = mode
	}
	if w.validateFlag != "" {
		validation, err := parseValidation(w.validateFlag)
		if err != nil {
			return err
		}
		w.FieldValidation = validation
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

// Defaults returns the values as defaults of a handle.
func (w *Write) Defaults() *dynamic.Defaults {
	return &dynamic.Defaults{FieldManager: w.FieldManager, FieldValidation: w.FieldValidation, DryRun: w.DryRun == DryRunServer}
}
