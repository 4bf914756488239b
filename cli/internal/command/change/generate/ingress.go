package generate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/anykind/anykind/unstructured"
)

type ingressOptions struct {
	class, defaultBackend string
	rules, annotations    []string
}

func ingress() *Generator {
	o := &ingressOptions{}
	return &Generator{
		Use: "ingress NAME --rule=host/path=service:port[,tls[=secret]]", Short: "Create an ingress with the specified name", Aliases: []string{"ing"},
		Failure: "failed to create ingress: ", Names: map[string]string{"class": "ingressclasses"},
		AddFlags: func(fs *pflag.FlagSet) {
			fs.StringVar(&o.class, "class", "", "Ingress Class to be used")
			fs.StringArrayVar(&o.rules, "rule", nil, "Rule in format host/path=service:port[,tls=secretname]. Paths containing the leading character '*' are considered pathType=Prefix. tls argument is optional.")
			fs.StringVar(&o.defaultBackend, "default-backend", "", "Default service for backend, in format of svcname:port")
			fs.StringArrayVar(&o.annotations, "annotation", nil, "Annotation to insert in the ingress object, in the format annotation=value")
		},
		Generate: simple(o.generate),
	}
}

func (o *ingressOptions) generate(name string) (*unstructured.Object, error) {
	if len(o.rules) == 0 && o.defaultBackend == "" {
		return nil, errors.New("not enough information provided: every ingress has to either specify a default-backend (which catches all traffic) or a list of rules (which catch specific paths)")
	}
	spec := object{}
	if o.class != "" {
		spec["ingressClassName"] = o.class
	}
	if o.defaultBackend != "" {
		backend, found := ingressBackend(o.defaultBackend)
		if !found {
			return nil, errors.New("default-backend should be in format servicename:serviceport")
		}
		spec["defaultBackend"] = backend
	}
	if err := o.addRules(spec); err != nil {
		return nil, err
	}
	obj := newObject("networking.k8s.io/v1", "Ingress", name, object{"spec": spec, "status": object{"loadBalancer": object{}}})
	annotations := map[string]string{}
	for _, pair := range o.annotations {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("annotation %s is invalid and should be in format key=[value]", pair)
		}
		annotations[key] = value
	}
	if len(annotations) > 0 {
		obj.SetAnnotations(annotations)
	}
	return obj, nil
}

// ingressBackend parses SERVICE:PORT.
func ingressBackend(text string) (object, bool) {
	service, port, found := strings.Cut(text, ":")
	if !found || service == "" || port == "" {
		return nil, false
	}
	reference := object{"name": port}
	if number, err := strconv.ParseInt(port, 10, 32); err == nil {
		reference = object{"number": number}
	}
	return object{"service": object{"name": service, "port": reference}}, true
}

// addRules adds a rule for each host and a TLS entry for each secret.
func (o *ingressOptions) addRules(spec object) error {
	var hosts, secrets, tlsHosts []string
	paths := map[string][]any{}
	hostsOf := map[string][]any{}
	for _, rule := range o.rules {
		main, tls, hasTLS := strings.Cut(rule, ",")
		host, path, err := parseIngressRule(rule, main)
		if err != nil {
			return err
		}
		if paths[host] == nil {
			hosts = append(hosts, host)
		}
		paths[host] = append(paths[host], path)
		if !hasTLS || slices.Contains(tlsHosts, host) {
			continue
		}
		tlsHosts = append(tlsHosts, host)
		_, secret, _ := strings.Cut(tls, "=")
		if !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
		if host != "" {
			hostsOf[secret] = append(hostsOf[secret], host)
		}
	}
	var rules, entries []any
	for _, host := range hosts {
		entry := object{"http": object{"paths": paths[host]}}
		if host != "" {
			entry["host"] = host
		}
		rules = append(rules, entry)
	}
	for _, secret := range secrets {
		entry := object{}
		if secret != "" {
			entry["secretName"] = secret
		}
		if len(hostsOf[secret]) > 0 {
			entry["hosts"] = hostsOf[secret]
		}
		if len(entry) > 0 {
			entries = append(entries, entry)
		}
	}
	if len(rules) > 0 {
		spec["rules"] = rules
	}
	if len(entries) > 0 {
		spec["tls"] = entries
	}
	return nil
}

// parseIngressRule parses HOST/PATH=SERVICE:PORT.
func parseIngressRule(rule, text string) (host string, path object, err error) {
	invalid := fmt.Errorf("rule %s is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]", rule)
	host, rest, found := strings.Cut(text, "/")
	if !found {
		return "", nil, invalid
	}
	location, service, found := strings.Cut(rest, "=")
	backend, isBackend := ingressBackend(service)
	if !found || !isBackend {
		return "", nil, invalid
	}
	pathType := "Exact"
	if prefix, isPrefix := strings.CutSuffix(location, "*"); isPrefix {
		location = prefix
		pathType = "Prefix"
	}
	return host, object{"path": "/" + location, "pathType": pathType, "backend": backend}, nil
}
