package commands_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/spf13/cobra"

	"github.com/anykind/anykind/cli/commands"
	"github.com/anykind/anykind/cli/flags"
)

// A program with the command get of anyctl and a command of its own. Its main passes os.Args[1:] and exits with the result of Run.
func ExampleNew() {
	connection := flags.NewConnection()
	root := &cobra.Command{Use: "shopctl"}
	root.SetOut(os.Stdout)
	root.AddCommand(&cobra.Command{Use: "open", Short: "Open the shop", Run: func(cmd *cobra.Command, _ []string) {
		fmt.Fprintln(cmd.OutOrStdout(), "open in namespace", connection.NamespaceFlag)
	}})
	program, err := commands.New(root, connection, []string{"open", "-n", "shop"}, "get")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("exit code", program.Run(context.Background()))
	// Output:
	// open in namespace shop
	// exit code 0
}
