/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands: each is a file of this directory and a row of the table in main.c. */
#pragma once

/* argv[0] is the subcommand's name. Each returns the exit code. */
int command_record(int argc, char **argv);
int command_top(int argc, char **argv);
int command_stacks(int argc, char **argv);
int command_triage(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_report(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_flame(int argc, char **argv);
int command_view(int argc, char **argv);
int command_info(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_gate(int argc, char **argv);
int command_debuginfo(int argc, char **argv);
int command_up(int argc, char **argv);
int command_agent(int argc, char **argv);
int command_agents(int argc, char **argv);
int command_control(int argc, char **argv);
int command_recording(int argc, char **argv);
int command_server(int argc, char **argv);
int command_query(int argc, char **argv);
int command_push(int argc, char **argv);
int command_baseline(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_findings(int argc, char **argv);
int command_rules(int argc, char **argv);
int command_pin(int argc, char **argv);
int command_simulated(int argc, char **argv);
int command_token(int argc, char **argv);
int command_store(int argc, char **argv);
