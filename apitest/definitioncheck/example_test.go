package definitioncheck_test

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/apitest/definitioncheck"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// Every difference is printed. With Rules of package apitest/cel, CEL rules are evaluated, too.
func ExampleCheck() {
	check := func(ctx context.Context, client *dynamic.Client, definition *unstructured.Object) error {
		report, err := definitioncheck.Check(ctx, client, definition, nil)
		if err != nil {
			return err
		}
		for _, finding := range report.Definition {
			fmt.Println(finding)
		}
		for _, finding := range report.Findings {
			fmt.Println(finding) // v1: NotUpdatable spec.size: Invalid value: must be odd (2 objects: shop/a, shop/b)
		}
		for _, text := range report.NotChecked {
			fmt.Println("not checked:", text)
		}
		return nil
	}
	_ = check
}
