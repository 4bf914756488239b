package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/unstructured"
)

func quota() *Generator {
	var hard, scopes string
	return &Generator{
		Use: "quota NAME [--hard=key1=value1,key2=value2] [--scopes=Scope1,Scope2]", Short: "Create a quota with the specified name", Aliases: []string{"resourcequota"},
		Failure: "failed to create quota: ", Values: map[string]string{"scopes": "resourcequotas.spec.scopes"},
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&hard, "hard", "", "A comma-delimited set of resource=quantity pairs that define a hard limit.")
			fs.StringVar(&scopes, "scopes", "", "A comma-delimited set of quota scopes that must all match each object tracked by the quota.")
		},
		Generate: simple(func(name string) (*unstructured.Object, error) {
			spec := object{}
			limits, err := ParseQuantities(hard)
			if err != nil {
				return nil, err
			}
			if len(limits) > 0 {
				spec["hard"] = limits
			}
			if scopes != "" {
				names := strings.Split(scopes, ",")
				for _, scope := range names {
					if scope == "" {
						return nil, errors.New(`invalid resource quota scope ""`)
					}
				}
				spec["scopes"] = list(names)
			}
			return newObject("v1", "ResourceQuota", name, object{"spec": spec, "status": object{}}), nil
		}),
	}
}

// ParseQuantities parses a list of resources with quantities: cpu=100m,memory=1Gi.
func ParseQuantities(text string) (map[string]any, error) {
	limits := object{}
	if text == "" {
		return limits, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(pair, "=")
		if !found || strings.Contains(value, "=") {
			return nil, fmt.Errorf("Invalid argument syntax %v, expected <resource>=<value>", pair)
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, err
		}
		limits[name] = quantity.String()
	}
	return limits, nil
}

func disruptionBudget() *Generator {
	var minAvailable, maxUnavailable, selector string
	return &Generator{
		Use: "poddisruptionbudget NAME --selector=SELECTOR --min-available=N", Short: "Create a pod disruption budget with the specified name", Aliases: []string{"pdb"},
		Failure: "failed to create poddisruptionbudgets: ",
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&minAvailable, "min-available", "", "The minimum number or percentage of available pods this budget requires.")
			fs.StringVar(&maxUnavailable, "max-unavailable", "", "The maximum number or percentage of unavailable pods this budget requires.")
			fs.StringVar(&selector, "selector", "", "A label selector to use for this budget. Only equality-based selector requirements are supported.")
		},
		Generate: simple(func(name string) (*unstructured.Object, error) {
			switch {
			case selector == "":
				return nil, errors.New("a selector must be specified")
			case minAvailable == "" && maxUnavailable == "":
				return nil, errors.New("one of min-available or max-unavailable must be specified")
			case minAvailable != "" && maxUnavailable != "":
				return nil, errors.New("min-available and max-unavailable cannot be both specified")
			}
			spec, err := budgetSpec(minAvailable, maxUnavailable, selector)
			// kubectl's dry run prints these zeros: the fields of the Go type have no omitempty.
			status := object{"currentHealthy": int64(0), "desiredHealthy": int64(0), "disruptionsAllowed": int64(0), "expectedPods": int64(0)}
			return newObject("policy/v1", "PodDisruptionBudget", name, object{"spec": spec, "status": status}), err
		}),
	}
}

func budgetSpec(minAvailable, maxUnavailable, selector string) (object, error) {
	parsed, err := metav1.ParseToLabelSelector(selector)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(parsed)
	if err != nil {
		return nil, err
	}
	var content object
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	spec := object{"selector": content}
	for field, value := range map[string]string{"minAvailable": minAvailable, "maxUnavailable": maxUnavailable} {
		if value == "" {
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(value, "%"), 10, 31)
		switch {
		case err != nil:
			flag := map[string]string{"minAvailable": "min-available", "maxUnavailable": "max-unavailable"}[field]
			return nil, fmt.Errorf("invalid format specified for %s", flag)
		case strings.HasSuffix(value, "%"):
			spec[field] = value
		default:
			spec[field] = int64(number)
		}
	}
	return spec, nil
}
