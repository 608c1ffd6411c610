-- Indexes for looking up what refers to a row: not in a fresh file, because every row that is recorded would have to be put into all
-- of them. Made by rocpd.schema's writeFullSchema; their names are the ones that existing tools know.
CREATE INDEX IF NOT EXISTS "rocpd_api_apiName_id_54bc0a6c" ON "rocpd_api" ("apiName_id");
CREATE INDEX IF NOT EXISTS "rocpd_api_args_id_6a626626" ON "rocpd_api" ("args_id");
CREATE UNIQUE INDEX IF NOT EXISTS "rocpd_api_ops_api_id_op_id_e7e52317_uniq" ON "rocpd_api_ops" ("api_id", "op_id");
CREATE INDEX IF NOT EXISTS "rocpd_api_ops_api_id_f87632ad" ON "rocpd_api_ops" ("api_id");
CREATE INDEX IF NOT EXISTS "rocpd_api_ops_op_id_b35ab7c9" ON "rocpd_api_ops" ("op_id");
CREATE UNIQUE INDEX IF NOT EXISTS "rocpd_op_inputSignals_from_op_id_to_op_id_163a30a7_uniq" ON "rocpd_op_inputSignals" ("from_op_id", "to_op_id");
CREATE INDEX IF NOT EXISTS "rocpd_op_inputSignals_from_op_id_5fd8f825" ON "rocpd_op_inputSignals" ("from_op_id");
CREATE INDEX IF NOT EXISTS "rocpd_op_inputSignals_to_op_id_d34a7779" ON "rocpd_op_inputSignals" ("to_op_id");
CREATE INDEX IF NOT EXISTS "rocpd_op_description_id_c8dc8310" ON "rocpd_op" ("description_id");
CREATE INDEX IF NOT EXISTS "rocpd_op_opType_id_810aaccd" ON "rocpd_op" ("opType_id");
